// SPDX-License-Identifier: BSL-1.0
#pragma once
namespace varve {

class tensor;

namespace detail {
/// Who is told what a program reads of tensors as C++ values, while it is traced for later calls.
struct read_watcher {
  virtual void number(tensor const& t) = 0;
  virtual void memory(tensor const& t) = 0;

protected:
  ~read_watcher() = default;
};
inline constinit thread_local read_watcher* watches_reads = nullptr;
/// Who makes something else of tensors that a program makes of C++ values (`fake_mode`).
struct literal_lifter {
  virtual tensor lifted(tensor const& t) = 0;

protected:
  ~literal_lifter() = default;
};
inline constinit thread_local literal_lifter* lifts_literals = nullptr;
/// Who is told that a tensor becomes another value under the same handle, before, when it may be refused, and after: a
/// tracer.
struct rename_watcher {
  void (*renaming)(rename_watcher& self, char const* op, tensor const& x); // no virtual functions: each unit has those
  void (*renamed)(rename_watcher& self, tensor const& x, tensor const& y);
  /// `y` is the data of `x` (`tensor::data`).
  void (*read)(rename_watcher& self, tensor const& x, tensor const& y);
  /// `y` is another handle of the value x.
  void (*shared)(rename_watcher& self, tensor const& x, tensor const& y);
  /// `detach`, which no unit has that does not trace.
  tensor (*detach)(tensor const& x);
};
inline constinit thread_local rename_watcher* watches_renames = nullptr;
} // namespace detail

} // namespace varve
