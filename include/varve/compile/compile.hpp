// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/owner_lock.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/trace/make_fx.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstring>
#include <utility>
#include <vector>

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
  if constexpr (is_vector<T>) {
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
/// Is a program that was made with a constant the one for another? Zeros of two signs are not the same; NaN is NaN.
template <class V>
bool same_constant(V const& a, V const& b) {
  if constexpr (std::is_floating_point_v<V>)
    return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b));
  else return a == b;
}
/// Would the operators of a function meet nothing but their kernels? Then they may be run as one.
inline bool runs_plainly(tensor const& t) {
  return t.defined() && !t.is_wrapped() && t.has_data() && t.keys().has(dispatch_key::cpu) &&
         !(t.requires_grad() && is_grad_enabled());
}
/// What a trace depends on of a tensor besides its values: dtype and sizes, and what the program may ask it.
struct traced_kind {
  meta info;
  bool number, contiguous, requires_grad;
  static traced_kind of(tensor const& t) { return {meta_of(t), t.is_number(), t.is_contiguous(), t.requires_grad()}; }
  bool operator==(traced_kind const& o) const {
    return info == o.info && number == o.number && contiguous == o.contiguous && requires_grad == o.requires_grad;
  }
};
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
/// One address for each type.
template <class T>
inline constexpr char type_mark = 0;
} // namespace detail

struct fast_math_t; // fast_math.hpp

/// A function of tensors that is traced, planned and fused for each set of dtypes and sizes it is called with: see
/// `compile`. Threads may share it; copies share what was made.
template <class F, class... How>
class compiled_function {
public:
  explicit compiled_function(F f) : f_(std::move(f)), made_(std::make_shared<cache>()) {}

  /// Arguments are tensors, or trees in which numbers are constants of the program.
  template <class... X>
    requires(std::is_same_v<X, tensor> && ...)
  auto operator()(X const&... x) const {
    return this_thread_state.quiet() ? call(loop::plain_tensor(x)...) : call(x...);
  }
  template <class... X>
    requires(!(std::is_same_v<X, tensor> && ...) && (detail::compilable<X>() && ...))
  auto operator()(X const&... x) const {
    return call(x...);
  }
  /// Traces and plans for these arguments, and writes nothing.
  template <class... X>
  void prepare(X const&... x) const {
    (void)found_or_made(x...);
  }
  /// For how many sets of dtypes and sizes a program is kept.
  std::size_t versions() const {
    detail::spin_lock::held const on(made_->lock);
    return made_->all.size();
  }

private:
  template <class... X>
  using result_of = decltype(detail::call_with(std::declval<F const&>(), std::declval<std::tuple<X const&...>>()));
  using kind = dependent<detail::traced_kind, F>;
  /// What a program was made for, and the program.
  struct version {
    void const* types;                     // of the arguments
    std::shared_ptr<void const> constants; // ... as a tuple without its tensors
    bool grad_mode;
    std::vector<kind> arguments, captures;
    boxed_args captured;
    std::vector<typename detail::numbers_read<dependent<tensor, F>>::one> numbers;
    fused_graph run;
    list<int> written;                   // arguments and captures that further results are written into
    std::shared_ptr<void const> results; // the tree that the function returned, with undefined tensors
  };
  struct cache {
    static constexpr std::size_t most = 64;
    detail::spin_lock lock;
    std::vector<std::shared_ptr<version const>> all; // what was called last comes first
    detail::owner_lock making;                       // what one thread makes others wait for
  };

  template <class... X>
  static boxed_args tensors_of(X const&... x) {
    boxed_args r;
    auto const take = [&](auto const& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) r.push_back(v);
    };
    (tree_for_each(take, x), ...);
    return r;
  }
  template <class T>
  static auto without_tensors(T const& tree) {
    return tree_map(
        [](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return tensor();
          else return v;
        },
        tree);
  }
  static bool run_plainly(boxed_args const& x) {
    for (auto const& t : x)
      if (!detail::runs_plainly(t)) return false;
    return true;
  }

  template <class... X>
  result_of<X...> call(X const&... x) const {
    using Y = result_of<X...>;
    auto const itself = [&] { return detail::call_with(f_, std::tuple<X const&...>(x...)); };
    boxed_args in = tensors_of(x...);
    if (!this_thread_state.quiet() || !run_plainly(in)) return itself();
    std::shared_ptr<version const> const v = found_or_made(x...);
    if (!run_plainly(v->captured)) return itself();
    for (auto const& t : v->captured) in.push_back(t);
    for (int at : v->written) // the trace took them for apart, and for row-major
      for (int k = 0; k < in.size(); ++k)
        if (k == at ? !in[at].is_contiguous() : in[k].shares_storage(in[at])) return itself();
    boxed_args const y = v->run(in);
    int k = y.size() - static_cast<int>(v->written.size());
    for (int at : v->written) copy_(in[at], static_cast<dependent<tensor, F> const&>(y[k++]));
    if constexpr (!std::is_void_v<Y>) {
      k = 0;
      return tree_map([&](auto const&) -> tensor { return y[k++]; }, *static_cast<Y const*>(v->results.get()));
    }
  }
  template <class... X>
  static bool same_arguments(version const& v, X const&... x) {
    if (v.types != &detail::type_mark<std::tuple<X...>>) return false;
    std::size_t k = 0;
    bool const same =
        detail::same_tree(std::tuple<X...>(x...), *static_cast<std::tuple<X...> const*>(v.constants.get()),
                          [&]<class V>(V const& now, V const& then) {
                            if constexpr (!std::is_same_v<V, tensor>) return detail::same_constant(now, then);
                            else return k < v.arguments.size() && v.arguments[k++] == detail::traced_kind::of(now);
                          });
    return same && k == v.arguments.size() && v.grad_mode == is_grad_enabled();
  }
  static bool same_captures(version const& v) {
    for (int c = 0; c < v.captured.size(); ++c)
      if (!(v.captures[static_cast<std::size_t>(c)] == detail::traced_kind::of(v.captured[c]))) return false;
    for (auto const& n : v.numbers)
      if (!n.still()) return false;
    return true;
  }
  template <class... X>
  std::shared_ptr<version const> find(X const&... x) const {
    detail::spin_lock::held const on(made_->lock);
    auto& all = made_->all;
    for (auto v = all.begin(); v != all.end(); ++v)
      if (same_arguments(**v, x...) && same_captures(**v)) {
        std::rotate(all.begin(), v, v + 1);
        return all.front();
      }
    return nullptr;
  }
  template <class... X>
  std::shared_ptr<version const> found_or_made(X const&... x) const {
    if (auto const v = find(x...)) return v;
    detail::owner_lock::held const on(made_->making);
    if (auto const v = find(x...)) return v;
    return trace(x...);
  }
  template <class... X>
  VARVE_COLD std::shared_ptr<version const> trace(X const&... x) const {
    boxed_args captured;
    std::shared_ptr<void const> results;
    auto const returned = [&](auto const&... y) {
      ((results = std::make_shared<std::remove_cvref_t<decltype(y)>>(without_tensors(y))), ...);
    };
    using G = dependent<graph, F>; // what is known without F compilers may instantiate without a use
    detail::numbers_read<dependent<tensor, F>> read;
    G const g = make_fx_function<F const&>(f_).with_captures(captured, returned, x...);
    list<int> written;
    G const values = values_only(g);
    G const pure = functionalize(values);
    G const whole = detail::writes_as_results(pure, written);
    auto const kinds = [](boxed_args const& of) {
      std::vector<kind> r;
      for (auto const& t : of) r.push_back(detail::traced_kind::of(t));
      return r;
    };
    auto const v = std::make_shared<version const>(
        version{&detail::type_mark<std::tuple<X...>>,
                std::make_shared<std::tuple<X...>>(without_tensors(std::tuple<X...>(x...))), is_grad_enabled(),
                kinds(tensors_of(x...)), kinds(captured), captured, std::move(read.all), fuse(whole, How{}...),
                std::move(written), std::move(results)});
    std::shared_ptr<version const> dropped; // let go outside of the lock: what it captured may be the user's
    detail::spin_lock::held const on(made_->lock);
    for (auto& old : made_->all)
      if (same_arguments(*old, x...)) { // what it captures is of another kind now, or reads otherwise
        dropped = std::exchange(old, v);
        return v;
      }
    made_->all.insert(made_->all.begin(), v);
    if (made_->all.size() > cache::most) {
      dropped = std::move(made_->all.back());
      made_->all.pop_back();
    }
    return v;
  }

  F f_;
  std::shared_ptr<cache> made_;
};

/// `auto fast = compile(f); tensor y = fast(x);`: traces `f` at the dtypes and sizes of its first arguments, fuses the
/// graph (`fuse(graph)`), and runs that from then on; arguments of other dtypes or sizes are traced anew, once, and so
/// where `is_contiguous()`, `requires_grad()` or `is_grad_enabled()` would answer otherwise: the 64 programs that were
/// called last are kept. Arguments are tensors, or
/// trees of them in which numbers are constants; results may be a tree of tensors, all fresh, or nothing. Tensors that
/// `f` captures are inputs: what is in them counts at each call, not at the first; write into them (`copy_`), for
/// another tensor that is assigned to a captured variable later is not seen, nor is what `f` asks of a captured tensor
/// that no operator is called on (`defined()`, sizes). Where it reads a captured tensor as a number (`item()`, an
/// `if`), it is traced again when that has changed; reading its memory (`data()`) is refused. The trace runs on copies:
/// nothing is written or drawn but by the program, and what it writes into arguments and captured tensors is written
/// when all is computed. Branches of C++ control flow are those of the trace: use `where` or `cond` where they depend
/// on values of arguments. Gradients: `compile(grad(f))`. Where transforms, modes or autograd watch, the call runs `f`
/// itself, operator by operator. Errors: those of `make_fx` and `fuse(graph)` at the first call.
template <class F>
auto compile(F f) {
  return compiled_function<F>(std::move(f));
}
/// ... fused in another way: `compile(f, fast_math)`.
template <class F, std::same_as<fast_math_t> How>
auto compile(F f, How) {
  return compiled_function<F, How>(std::move(f));
}
/// ... and makes the program for these arguments at once.
template <class F, class... X>
  requires(sizeof...(X) > 0 && (std::is_same_v<X, tensor> && ...))
auto compile(F f, X const&... x) {
  compiled_function<F> r(std::move(f));
  r.prepare(x...);
  return r;
}

/// What `fuse(f)` gives of a function that captures: on tensors `compile(f)`, since the compiler cannot see what is
/// captured; static values are refused.
template <class F, class... How>
class fused_with_captures : public compiled_function<F, How...> {
public:
  using compiled_function<F, How...>::compiled_function;

  template <class... A>
  auto operator()(A const&... a) const {
    if constexpr ((std::is_same_v<A, tensor> && ...)) return compiled_function<F, How...>::operator()(a...);
    else if constexpr ((std::is_same_v<std::remove_cvref_t<decltype(detail::viewed(a))>, tensor> && ...))
      return compiled_function<F, How...>::operator()(detail::viewed(a)...); // memory with `dyn` extents
    else
      static_assert(never<A...>, "varve: fuse: the function must capture nothing, but for calls on tensors alone; pass "
                                 "the values as arguments, or compile(f)");
  }
  template <class... R>
  compiled_function<F, How...> const& into(R&&...) const {
    static_assert(never<R...>, "varve: fuse: the function must capture nothing to write its results into(...); pass "
                               "the values as arguments, or take the results that calls return");
    return *this;
  }
};

/// `auto fast = fuse([&](auto const& x) { return x * w; });`: a function that captures, for calls on tensors: it is
/// planned at its first call, as by `compile(f)`. What holds there holds here: captured tensors are inputs of every
/// call, captured numbers constants of the first. On static values it is refused by the compiler.
template <class F>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f) {
  return fused_with_captures<F>(f);
}
/// ... `fuse(f, table_driven)`: programs made at run time are tables always.
template <class F, loop::execution How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fused_with_captures<F>(f);
}

/// ... `fuse(f, fast_math)`, likewise.
template <class F, std::same_as<fast_math_t> How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fused_with_captures<F, How>(f);
}

} // namespace varve
