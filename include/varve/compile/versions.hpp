// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/compile/compiled_function.hpp>
#include <varve/core/owner_lock.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/trace/make_fx.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// @file
/// Common parts of functions that are compiled at run time: for which arguments and captured tensors a program was
/// made, and the store of programs.
namespace varve::detail {

#if VARVE_DEFINES_CAPTURE
/// True if only kernels would see the operators of a function on this tensor, so that they may run as one program.
inline bool runs_plainly(tensor const& t) {
  return t.defined() && !t.is_wrapped() && t.has_data() && t.keys().has(dispatch_key::cpu) && !is_compact(t.dtype()) &&
         !is_complex(t.dtype()) && !(t.has_history() && is_grad_enabled());
}
/// The properties of a tensor on which a trace depends, besides its elements: dtype, sizes, and properties that the
/// program may query.
struct traced_kind {
  meta info;
  bool number, contiguous, requires_grad;
  static traced_kind of(tensor const& t) { return {meta_of(t), t.is_number(), t.is_contiguous(), t.has_history()}; }
  bool operator==(traced_kind const& o) const {
    return info == o.info && number == o.number && contiguous == o.contiguous && requires_grad == o.requires_grad;
  }
};
/// The sizes of a tensor that a program leaves free: one bit for each dimension.
using free_sizes = unsigned;
/// True if a tensor is of the kind that a program was made for, except for the sizes that the program leaves free.
inline bool is_of_kind(traced_kind const& now, traced_kind const& then, free_sizes free) {
  if (!free) return now == then;
  dims sizes = now.info.sizes;
  if (sizes.n != then.info.sizes.n) return false;
  for (int d = 0; d < sizes.n; ++d)
    if (free >> d & 1) sizes[d] = then.info.sizes[d];
  return traced_kind{{now.info.type, sizes}, now.number, now.contiguous, now.requires_grad} == then;
}
/// A recorder of the tensors that a function reads as numbers while it is compiled. The program is valid for these
/// values. (A template, so that it costs nothing unless used.)
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
    if (t.object()) return; // it refuses, or reads a tensor that it holds
    if (inside_trace() && !t.is_number()) all.push_back({t, one::bytes_of(t)});
  }
  void memory(tensor const&, memory_reader const& by) override {
    if (inside_trace())
      refuse::argument_is_invalid(
          "compile", (std::string(by.what) + ", which another call may find changed; " + by.remedy).c_str());
  }
  read_watcher* before_;
};
/// A program made from a function for some arguments.
template <class T>
class compiled_program {
public:
  virtual ~compiled_program() = default;
  /// True if the program is valid for the arguments of a call, beyond their kinds.
  virtual bool is_for(boxed_args const&) const { return true; }
  /// Returns a description of the program.
  virtual std::string how() const { return ""; }
  /// True if the captured tensors that were read as numbers still have the same values.
  bool still() const { return numbers_read<T>::still(numbers); }
  std::vector<typename numbers_read<T>::one> numbers{};
};

/// The programs made from a function, one for each kind of arguments and captured tensors that it was called with. The
/// 64 programs that were called last are kept. If only sizes differ from an earlier program, a program is made that
/// leaves these sizes free, where possible: static first, dynamic at the first change. The first thread makes a program
/// while others wait.
template <class T>
class program_versions : public function_programs {
public:
  static constexpr std::size_t most = 64;
  using program = std::shared_ptr<compiled_program<T> const>;

  void prepare(boxed_call const& call) override;
  std::size_t size() const override;
  std::string explain(boxed_call const& call) const override;

protected:
  /// A program and what it was made for.
  struct version {
    argument_types const* types;
    std::shared_ptr<void const> constants; // constants among the arguments
    bool grad_mode;
    dtype default_type; // of tensors that the function makes
    std::vector<traced_kind> arguments, captures;
    boxed_args captured;
    program made;
    std::shared_ptr<void const> returned; // structure of the returned tree
    std::vector<free_sizes> free{};       // of the arguments; empty if no size is free
  };
  using version_ptr = std::shared_ptr<version const>;
  version_ptr found_or_made(boxed_call const& call);

private:
  virtual program make(boxed_call const&, boxed_args& captured) const = 0;
  virtual bool leaves_free() const { return false; }
  /// Makes a program for any sizes where `which` has bits, and removes the bits of sizes that cannot be free. Returns
  /// null if there is no such program.
  virtual program make_free(boxed_call const&, std::vector<free_sizes>&, boxed_args&) const { return nullptr; }

  mutable spin_lock lock_;
  std::vector<version_ptr> all_; // most recently called first
  owner_lock making_;

  std::vector<version_ptr> kept() const;
  static std::vector<free_sizes> changed_sizes(std::vector<version_ptr> const& all, boxed_call const&);
  static std::string why_not(version const&, boxed_call const&);
  static bool same_thread_state(version const& v) {
    return v.grad_mode == is_grad_enabled() && v.default_type == get_default_dtype();
  }
  static bool same_arguments(version const&, boxed_call const&);
  static bool same_captures(version const&);
  version_ptr find(boxed_call const&);
  version_ptr make_version(boxed_call const&);
};

/// Returns a text such as "argument 0: size 1 ...".
inline std::string text_of_sizes(std::vector<free_sizes> const& free, char const* what) {
  std::string r;
  for (std::size_t k = 0; k < free.size(); ++k)
    for (int d = 0; d < max_rank; ++d)
      if (free[k] >> d & 1) r += "argument " + std::to_string(k) + ": size " + std::to_string(d) + what;
  return r;
}
/// Describes how a tensor differs in kind from the one that a program was made for; "" if it does not.
inline std::string kind_difference(std::string const& which, traced_kind const& now, traced_kind const& then) {
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
/// True if only kernels would see the operators of a function on these tensors.
inline bool run_plainly(boxed_args const& x) {
  for (auto const& t : x)
    if (!runs_plainly(t)) return false;
  return true;
}

template <class T>
void program_versions<T>::prepare(boxed_call const& call) {
  (void)found_or_made(call);
}
template <class T>
std::size_t program_versions<T>::size() const {
  spin_lock::held const on(lock_);
  return all_.size();
}
template <class T>
auto program_versions<T>::kept() const -> std::vector<version_ptr> {
  spin_lock::held const on(lock_);
  return all_;
}
template <class T>
auto program_versions<T>::found_or_made(boxed_call const& call) -> version_ptr {
  if (auto v = find(call)) return v;
  owner_lock::held const on(making_);
  if (auto v = find(call)) return v;
  return make_version(call);
}
template <class T>
std::string program_versions<T>::explain(boxed_call const& call) const {
  std::vector<version_ptr> const all = kept();
  std::string const count = std::to_string(all.size()) + (all.size() == 1 ? " program" : " programs");
  if (all.empty()) return "no program was made yet: the call traces one\n";
  for (std::size_t k = 0; k < all.size(); ++k)
    if (same_arguments(*all[k], call) && same_captures(*all[k]))
      return "runs one of " + count + ", " +
             (k ? "with " + std::to_string(k) + " called since it was" : "the one that was called last") +
             (all[k]->made->how().empty() ? "" : ": " + all[k]->made->how()) + "\n" +
             text_of_sizes(all[k]->free, " may be another one\n");
  return "traces another one beside " + count + ". Of the one that was called last:\n" + why_not(*all[0], call) +
         text_of_sizes(leaves_free() ? changed_sizes(all, call) : std::vector<free_sizes>{},
                       " has changed, and will be free if it can be\n");
}
/// Returns the sizes of the arguments in which they differ from programs that are otherwise for the same arguments;
/// empty if there are none.
template <class T>
std::vector<free_sizes> program_versions<T>::changed_sizes(std::vector<version_ptr> const& all,
                                                           boxed_call const& call) {
  boxed_args const& now = call.arguments;
  std::vector<free_sizes> r;
  for (auto const& v : all) {
    if (v->types != call.types || v->arguments.size() != static_cast<std::size_t>(now.size()) ||
        !same_thread_state(*v) || !call.has_constants(v->constants))
      continue;
    std::vector<free_sizes> here;
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
template <class T>
std::string program_versions<T>::why_not(version const& v, boxed_call const& call) {
  if (v.types != call.types) return "the arguments are of other C++ types\n";
  boxed_args const& now = call.arguments;
  if (static_cast<std::size_t>(now.size()) != v.arguments.size())
    return std::to_string(now.size()) + " tensors, but the program is for " + std::to_string(v.arguments.size()) + "\n";
  std::string r;
  for (int k = 0; k < now.size(); ++k)
    if (auto const at = static_cast<std::size_t>(k);
        !is_of_kind(traced_kind::of(now[k]), v.arguments[at], v.free.empty() ? 0 : v.free[at]))
      r += kind_difference("argument " + std::to_string(k), traced_kind::of(now[k]), v.arguments[at]);
  if (v.grad_mode != is_grad_enabled())
    r += std::string("gradients are ") + (v.grad_mode ? "off, but were on\n" : "on, but were off\n");
  if (v.default_type != get_default_dtype())
    r += std::string("the default dtype is ") + name(get_default_dtype()) + ", but was " + name(v.default_type) + "\n";
  if (r.empty() && !v.made->is_for(now))
    r += v.free.empty() ? "an argument is laid out otherwise, or a leaf and was none\n"
                        : "the sizes that may be others are not such ones, or an argument is laid out otherwise\n";
  if (r.empty() && !same_arguments(v, call)) r += "a constant among the arguments is another one\n";
  for (int c = 0; c < v.captured.size(); ++c)
    r += kind_difference("captured tensor " + std::to_string(c), traced_kind::of(v.captured[c]),
                         v.captures[static_cast<std::size_t>(c)]);
  if (!v.made->still()) r += "a captured tensor that is read as a number has changed\n";
  return r;
}
template <class T>
bool program_versions<T>::same_arguments(version const& v, boxed_call const& call) {
  if (v.types != call.types || v.arguments.size() != static_cast<std::size_t>(call.arguments.size())) return false;
  for (std::size_t k = 0; k < v.arguments.size(); ++k)
    if (!is_of_kind(traced_kind::of(call.arguments[static_cast<int>(k)]), v.arguments[k],
                    v.free.empty() ? 0 : v.free[k]))
      return false;
  return same_thread_state(v) && call.has_constants(v.constants) && v.made->is_for(call.arguments);
}
template <class T>
bool program_versions<T>::same_captures(version const& v) {
  for (int c = 0; c < v.captured.size(); ++c)
    if (!(v.captures[static_cast<std::size_t>(c)] == traced_kind::of(v.captured[c]))) return false;
  return v.made->still();
}
template <class T>
auto program_versions<T>::find(boxed_call const& call) -> version_ptr {
  spin_lock::held const on(lock_);
  for (auto v = all_.begin(); v != all_.end(); ++v)
    if (same_arguments(**v, call) && same_captures(**v)) {
      std::rotate(all_.begin(), v, v + 1);
      return all_.front();
    }
  return nullptr;
}
template <class T>
VARVE_COLD auto program_versions<T>::make_version(boxed_call const& call) -> version_ptr {
  auto const kinds = [](boxed_args const& of) {
    std::vector<traced_kind> r;
    for (auto const& t : of) r.push_back(traced_kind::of(t));
    return r;
  };
  boxed_args captured;
  std::vector<free_sizes> free;
  program made;
  if (leaves_free()) {
    std::vector<version_ptr> const all = kept();
    if (free = changed_sizes(all, call); !free.empty()) made = make_free(call, free, captured);
    if (!made) free.clear(), captured = boxed_args();
  }
  if (!made) made = make(call, captured);
  auto const v = std::make_shared<version const>(version{call.types, call.constants(), is_grad_enabled(),
                                                         get_default_dtype(), kinds(call.arguments), kinds(captured),
                                                         captured, std::move(made), call.returned, std::move(free)});
  version_ptr dropped; // destroyed outside of the lock: captured values may be the user's
  spin_lock::held const on(lock_);
  for (auto& old : all_)
    if (same_arguments(*old, call)) { // the captures are of another kind now, or have other values
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
#endif

} // namespace varve::detail
