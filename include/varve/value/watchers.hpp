// SPDX-License-Identifier: BSL-1.0
#pragma once
namespace varve {

class tensor;

namespace detail {
/// Who reads the elements of a tensor in C++, and what to write instead, for messages.
struct memory_reader {
  char const* what;
  char const* remedy;
};
inline constexpr memory_reader users_code{"the function reads the memory of a tensor (data, tensor_ref)",
                                          "use operators, or item() of one element"};
/// An observer of the tensor elements that a program reads as C++ values while it is traced for later calls.
struct read_watcher {
  virtual void number(tensor const& t) = 0;
  virtual void memory(tensor const& t, memory_reader const& by) = 0;

protected:
  ~read_watcher() = default;
};
inline constinit thread_local read_watcher* watches_reads = nullptr;
/// A hook that replaces tensors which a program makes from C++ values (`fake_mode`).
struct literal_lifter {
  virtual tensor lifted(tensor const& t) = 0;

protected:
  ~literal_lifter() = default;
};
inline constinit thread_local literal_lifter* lifts_literals = nullptr;
/// An observer of changes of the value behind a handle, for tracers. `renaming` is called before the change and may
/// refuse it; `renamed` is called after it.
struct rename_watcher {
  // No virtual functions, since each unit would contain them.
  void (*renaming)(rename_watcher& self, char const* op, tensor const& x);
  void (*renamed)(rename_watcher& self, tensor const& x, tensor const& y);
  /// Called when `y` was made as the data of `x` (`tensor::data`, `detach_`).
  void (*read)(rename_watcher& self, tensor const& x, tensor const& y);
  /// Called when `y` was made as another handle of the value x.
  void (*shared)(rename_watcher& self, tensor const& x, tensor const& y);
  /// Runs the operator `detach`. It is called through this pointer so that only units that trace contain it.
  tensor (*detach)(tensor const& x);
};
inline constinit thread_local rename_watcher* watches_renames = nullptr;
} // namespace detail

} // namespace varve
