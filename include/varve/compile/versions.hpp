// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/owner_lock.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/trace/make_fx.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

/// @file
/// What functions that are compiled at run time share: for which arguments and captured tensors a program was made, and
/// where the programs are kept.
namespace varve {

namespace detail {
/// Is a type a tensor, or a tree of tensors and of what can be compared?
template <class X>
constexpr bool compilable() {
  if constexpr (is_tree_node<X>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (compilable<E>() && ...);
    }(std::type_identity<elements_of<X>>{});
  else return std::is_same_v<X, tensor> || (!value<X> && std::equality_comparable<X>) || number<X>;
}
/// Have two trees of one type one structure, and leaves that are the same?
template <class T, class Same>
bool same_tree(T const& a, T const& b, Same const& same) {
  if constexpr (is_map<T>) {
    bool all = a.size() == b.size();
    for (auto x = a.begin(), y = b.begin(); all && x != a.end(); ++x, ++y)
      all = x->first == y->first && same_tree(x->second, y->second, same);
    return all;
  } else if constexpr (is_optional<T>) {
    return a.has_value() == b.has_value() && (!a || same_tree(*a, *b, same));
  } else if constexpr (is_vector<T>) {
    bool all = a.size() == b.size();
    for (std::size_t k = 0; all && k < a.size(); ++k) all = same_tree(a[k], b[k], same);
    return all;
  } else if constexpr (is_tree_node<T> && !tuple_node<T>) {
    return same_tree(members_of(a), members_of(b), same);
  } else if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return (same_tree(std::get<K>(a), std::get<K>(b), same) && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return same(a, b);
  }
}
/// ... of arguments with those that a program was made for.
template <class... X, class Same>
bool same_trees([[maybe_unused]] std::tuple<X...> const& then, [[maybe_unused]] Same const& same, X const&... now) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return (same_tree(now, std::get<K>(then), same) && ...);
  }(std::index_sequence_for<X...>{});
}
/// Is a program that was made with a constant the one for another? Zeros of two signs are not the same; NaN is NaN.
template <class V>
bool same_constant(V const& a, V const& b) {
  if constexpr (std::is_floating_point_v<V>)
    return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b));
  else return a == b;
}
/// Would the operators of a function meet nothing but their kernels? Then they may be run as one.
inline bool runs_plainly(tensor const& t) {
  return t.defined() && !t.is_wrapped() && t.has_data() && t.keys().has(dispatch_key::cpu) && !is_compact(t.dtype()) &&
         !is_complex(t.dtype()) && !(t.has_history() && is_grad_enabled());
}
/// What a trace depends on of a tensor besides its values: dtype and sizes, and what the program may ask it.
struct traced_kind {
  meta info;
  bool number, contiguous, requires_grad;
  static traced_kind of(tensor const& t) { return {meta_of(t), t.is_number(), t.is_contiguous(), t.has_history()}; }
  bool operator==(traced_kind const& o) const {
    return info == o.info && number == o.number && contiguous == o.contiguous && requires_grad == o.requires_grad;
  }
};
/// Which sizes of a tensor a program leaves free: a bit for each.
using free_sizes = unsigned;
/// Is a tensor of the kind that a program was made for, but for the sizes that it leaves free?
inline bool is_of_kind(traced_kind const& now, traced_kind const& then, free_sizes free) {
  if (!free) return now == then;
  dims sizes = now.info.sizes;
  if (sizes.n != then.info.sizes.n) return false;
  for (int d = 0; d < sizes.n; ++d)
    if (free >> d & 1) sizes[d] = then.info.sizes[d];
  return traced_kind{{now.info.type, sizes}, now.number, now.contiguous, now.requires_grad} == then;
}
/// "argument 0: size 1 ..."
inline std::string text_of_sizes(std::vector<free_sizes> const& free, char const* what) {
  std::string r;
  for (std::size_t k = 0; k < free.size(); ++k)
    for (int d = 0; d < max_rank; ++d)
      if (free[k] >> d & 1) r += "argument " + std::to_string(k) + ": size " + std::to_string(d) + what;
  return r;
}
/// What a function reads of tensors as numbers while it is compiled: a program is good for these values. (A template
/// only to cost nothing unless used.)
template <class T = tensor>
class numbers_read final : read_watcher {
public:
  numbers_read() : before_(watches_reads) { watches_reads = this; }
  numbers_read(numbers_read const&) = delete;
  numbers_read& operator=(numbers_read const&) = delete;
  ~numbers_read() { watches_reads = before_; }

  /// One tensor, and the bytes of its element.
  struct one {
    T of;
    std::array<unsigned char, 16> value;
    bool still() const { return of.numel() == 1 && bytes_of(of) == value; }
    static std::array<unsigned char, 16> bytes_of(tensor const& t) {
      std::array<unsigned char, 16> bytes{};
      std::memcpy(bytes.data(), t.raw(), static_cast<std::size_t>(itemsize(t.dtype())));
      return bytes;
    }
  };
  std::vector<one> all{};
  static bool still(std::vector<one> const& read) {
    return std::all_of(read.begin(), read.end(), [](one const& n) { return n.still(); });
  }

private:
  void number(tensor const& t) override {
    if (inside_trace() && !t.is_number()) all.push_back({t, one::bytes_of(t)});
  }
  void memory(tensor const&) override {
    if (inside_trace())
      refuse::argument_is_invalid("compile", "the function reads the memory of a tensor (data, tensor_ref), which "
                                             "another call may find changed; use operators, or item() of one element");
  }
  read_watcher* before_;
};
/// In words, how a tensor is of another kind than one that a program was made for; "" if it is not.
template <class = void>
std::string kind_difference(std::string const& which, traced_kind const& now, traced_kind const& then) {
  auto const said = [&](char const* what, std::string const& a, std::string const& b) {
    return which + ": " + what + " " + a + ", but the program is for " + b + "\n";
  };
  auto const yes = [](bool b) { return std::string(b ? "yes" : "no"); };
  std::string r;
  if (now.info.type != then.info.type) r += said("dtype", name(now.info.type), name(then.info.type));
  if (!(now.info.sizes == then.info.sizes)) r += said("sizes", to_string(now.info.sizes), to_string(then.info.sizes));
  if (now.number != then.number) r += said("a plain number:", yes(now.number), yes(then.number));
  if (now.contiguous != then.contiguous) r += said("contiguous:", yes(now.contiguous), yes(then.contiguous));
  if (now.requires_grad != then.requires_grad)
    r += said("requires a gradient:", yes(now.requires_grad), yes(then.requires_grad));
  return r;
}
/// One address for each type.
template <class T>
inline constexpr char type_mark = 0;

/// The tensors of some trees, in their order.
template <class... X>
boxed_args tensors_among(X const&... x) {
  boxed_args r;
  [[maybe_unused]] auto const take = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) r.push_back(v);
  };
  (tree_for_each(take, x), ...);
  return r;
}
/// A tree with undefined tensors in place of its own.
template <class T>
auto without_tensors(T const& tree) {
  return tree_map(
      [](auto const& v) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return tensor();
        else return v;
      },
      tree);
}
inline bool run_plainly(boxed_args const& x) {
  for (auto const& t : x)
    if (!runs_plainly(t)) return false;
  return true;
}

/// The programs made of a function, one for each kind of arguments and captured tensors that it was called with.
/// `Program` says `make(f, captured, returned, x...)`, `is_for(x...)` of the arguments of a call, beyond their kinds,
/// and `still()` of what it read of captured tensors. One that says `leaves_free(f)` is made, where only sizes are
/// other ones than before, by `make_free(f, which, ...)` for any such sizes, if it can be: static first, dynamic at the
/// first change. Threads share it; the first to come makes others wait.
template <class F, class Program>
class program_versions {
  using kind = dependent<traced_kind, F>;

public:
  static constexpr std::size_t most = 64;
  /// What a program was made for, and the program.
  struct version {
    void const* types;                     // of the arguments
    std::shared_ptr<void const> constants; // ... as a tuple without its tensors
    bool grad_mode;
    std::vector<kind> arguments, captures;
    boxed_args captured;
    Program program;
    std::shared_ptr<void const> results;          // the tree that the function returned, with undefined tensors
    std::vector<dependent<free_sizes, F>> free{}; // of the arguments; none: no size is

    /// ... with other tensors.
    template <class Y>
    Y result(boxed_args const& y) const {
      int k = 0;
      return tree_map([&](auto const&) -> tensor { return y[k++]; }, *static_cast<Y const*>(results.get()));
    }
  };

  std::size_t size() const {
    spin_lock::held const on(lock_);
    return all_.size();
  }
  template <class... X>
  std::shared_ptr<version const> found_or_made(F const& f, X const&... x) {
    if (auto const v = find(x...)) return v;
    owner_lock::held const on(making_);
    if (auto const v = find(x...)) return v;
    return make(f, x...);
  }

  /// What a call with these arguments would run, and if nothing, why not the program that was called last.
  template <class... X>
  std::string explain(X const&... x) const {
    std::vector<std::shared_ptr<version const>> const all = kept();
    std::string const count = std::to_string(all.size()) + (all.size() == 1 ? " program" : " programs");
    if (all.empty()) return "no program was made yet: the call traces one\n";
    for (std::size_t k = 0; k < all.size(); ++k)
      if (same_arguments(*all[k], x...) && same_captures(*all[k]))
        return "runs one of " + count + ", " +
               (k ? "with " + std::to_string(k) + " called since it was" : "the one that was called last") + "\n" +
               text_of_sizes(all[k]->free, " may be another one\n");
    return "traces another one beside " + count + ". Of the one that was called last:\n" + why_not(*all[0], x...) +
           text_of_sizes(leaves_free_ ? changed_sizes(all, x...) : std::vector<dependent<free_sizes, F>>{},
                         " has changed, and will be free if it can be\n");
  }

private:
  mutable spin_lock lock_;
  std::vector<std::shared_ptr<version const>> all_; // what was called last comes first
  owner_lock making_;
  std::atomic<bool> leaves_free_ = false; // as the function said when a program was made

  std::vector<std::shared_ptr<version const>> kept() const {
    spin_lock::held const on(lock_);
    return all_;
  }
  /// The sizes of the arguments in which programs differ from them, that are for the same but for these; empty: none.
  template <class... X>
  static std::vector<dependent<free_sizes, F>> changed_sizes(std::vector<std::shared_ptr<version const>> const& all,
                                                             X const&... x) {
    boxed_args const now = tensors_among(x...);
    std::vector<dependent<free_sizes, F>> r;
    if constexpr (requires(F const& f) { Program::leaves_free(f); })
      for (auto const& v : all) {
        if (v->types != &type_mark<std::tuple<X...>> || v->arguments.size() != static_cast<std::size_t>(now.size()) ||
            v->grad_mode != is_grad_enabled() || !same_constants(*v, x...))
          continue;
        std::vector<dependent<free_sizes, F>> here;
        for (auto const& then : v->arguments) {
          traced_kind const kind = traced_kind::of(now[static_cast<int>(here.size())]);
          free_sizes differ = v->free.empty() ? 0 : v->free[here.size()];
          for (int d = 0; d < kind.info.sizes.n && kind.info.sizes.n == then.info.sizes.n; ++d)
            if (kind.contiguous && !(kind.info.sizes[d] == then.info.sizes[d])) differ |= 1u << d;
          if (!is_of_kind(kind, then, differ)) break;
          here.push_back(differ);
        }
        if (here.size() != v->arguments.size()) continue;
        r.resize(here.size());
        for (std::size_t k = 0; k < r.size(); ++k) r[k] |= here[k];
      }
    for (auto const f : r)
      if (f) return r;
    return {};
  }
  template <class... X>
  static bool same_constants(version const& v, X const&... x) {
    return same_trees(
        *static_cast<std::tuple<X...> const*>(v.constants.get()),
        []<class V>(V const& now, V const& then) {
          if constexpr (std::is_same_v<V, tensor>) return true;
          else return same_constant(now, then);
        },
        x...);
  }
  template <class... X>
  static std::string why_not(version const& v, X const&... x) {
    if (v.types != &type_mark<std::tuple<X...>>) return "the arguments are of other C++ types\n";
    boxed_args const now = tensors_among(x...);
    if (static_cast<std::size_t>(now.size()) != v.arguments.size())
      return std::to_string(now.size()) + " tensors, but the program is for " + std::to_string(v.arguments.size()) +
             "\n";
    std::string r;
    for (int k = 0; k < now.size(); ++k)
      if (auto const at = static_cast<std::size_t>(k);
          !is_of_kind(traced_kind::of(now[k]), v.arguments[at], v.free.empty() ? 0 : v.free[at]))
        r += kind_difference("argument " + std::to_string(k), traced_kind::of(now[k]), v.arguments[at]);
    if (v.grad_mode != is_grad_enabled())
      r += std::string("gradients are ") + (v.grad_mode ? "off, but were on\n" : "on, but were off\n");
    if (r.empty() && !v.program.is_for(x...))
      r += v.free.empty() ? "an argument is laid out otherwise, or a leaf and was none\n"
                          : "the sizes that may be others are not such ones, or an argument is laid out otherwise\n";
    if (r.empty() && !same_arguments(v, x...)) r += "a constant among the arguments is another one\n";
    for (int c = 0; c < v.captured.size(); ++c)
      r += kind_difference("captured tensor " + std::to_string(c), traced_kind::of(v.captured[c]),
                           v.captures[static_cast<std::size_t>(c)]);
    if (!v.program.still()) r += "a captured tensor that is read as a number has changed\n";
    return r;
  }
  template <class... X>
  static bool same_arguments(version const& v, X const&... x) {
    if (v.types != &type_mark<std::tuple<X...>>) return false;
    std::size_t k = 0;
    bool const same = same_trees(
        *static_cast<std::tuple<X...> const*>(v.constants.get()),
        [&]<class V>(V const& now, V const& then) {
          if constexpr (!std::is_same_v<V, tensor>) return same_constant(now, then);
          else {
            bool const fits = k < v.arguments.size() &&
                              is_of_kind(traced_kind::of(now), v.arguments[k], v.free.empty() ? 0 : v.free[k]);
            return ++k, fits;
          }
        },
        x...);
    return same && k == v.arguments.size() && v.grad_mode == is_grad_enabled() && v.program.is_for(x...);
  }
  static bool same_captures(version const& v) {
    for (int c = 0; c < v.captured.size(); ++c)
      if (!(v.captures[static_cast<std::size_t>(c)] == traced_kind::of(v.captured[c]))) return false;
    return v.program.still();
  }
  template <class... X>
  std::shared_ptr<version const> find(X const&... x) {
    spin_lock::held const on(lock_);
    for (auto v = all_.begin(); v != all_.end(); ++v)
      if (same_arguments(**v, x...) && same_captures(**v)) {
        std::rotate(all_.begin(), v, v + 1);
        return all_.front();
      }
    return nullptr;
  }
  template <class... X>
  VARVE_COLD std::shared_ptr<version const> make(F const& f, X const&... x) {
    boxed_args captured;
    std::shared_ptr<void const> results;
    auto const returned = [&](auto const&... y) {
      ((results = std::make_shared<std::remove_cvref_t<decltype(y)>>(without_tensors(y))), ...);
    };
    auto const kinds = [](boxed_args const& of) {
      std::vector<kind> r;
      for (auto const& t : of) r.push_back(traced_kind::of(t));
      return r;
    };
    std::vector<dependent<free_sizes, F>> free;
    auto const made = [&]() -> Program {
      if constexpr (requires { Program::leaves_free(f); })
        if (leaves_free_ = Program::leaves_free(f); leaves_free_) {
          std::vector<std::shared_ptr<version const>> const all = kept();
          if (free = changed_sizes(all, x...); !free.empty())
            if (auto p = Program::make_free(f, free, captured, returned, x...)) return std::move(*p);
          free.clear(), captured = boxed_args();
        }
      return Program::make(f, captured, returned, x...);
    };
    Program program = made();
    auto const v = std::make_shared<version const>(
        version{&type_mark<std::tuple<X...>>,
                std::make_shared<std::tuple<X...>>(without_tensors(std::tuple<X...>(x...))), is_grad_enabled(),
                kinds(tensors_among(x...)), kinds(captured), captured, std::move(program), std::move(results), free});
    std::shared_ptr<version const> dropped; // let go outside of the lock: what it captured may be the user's
    spin_lock::held const on(lock_);
    for (auto& old : all_)
      if (same_arguments(*old, x...)) { // what it captures is of another kind now, or reads otherwise
        dropped = std::exchange(old, v);
        return v;
      }
    all_.insert(all_.begin(), v);
    if (all_.size() > most) {
      dropped = std::move(all_.back());
      all_.pop_back();
    }
    return v;
  }
};
} // namespace detail

} // namespace varve
