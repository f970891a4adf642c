// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/dispatch/schema.hpp>
#include <varve/mode/call_record.hpp>

#include <atomic>
#include <string>
#include <vector>

namespace varve {

/// The error for an operator that violates its schema; the message names the operator and the argument.
struct schema_error : error {
  using error::error;
};

/// A mode that checks whether every operator on tensors does what its schema says
/// (`torch._subclasses.schema_check_mode.SchemaCheckMode`):
///
/// * operands not declared mutated (`Tensor(a!)`) keep their bytes and version counters;
/// * those declared mutated have their version raised when their bytes change;
/// * a fresh result (`Tensor`) shares no storage with any operand;
/// * a result declared to alias (`Tensor(a)`, `Tensor(a!)`) shares the storage of that operand, unless no strides can
/// show it (`reshape` of a transposed matrix).
///
///   schema_check_mode check;
///   mode_guard const on{check};
///   my_program(x);      // varve: mylib::scale(Tensor self) -> Tensor: argument self is not declared mutated but was
///
/// Intended for tests: it copies every operand. Operators without a schema and values without data are not checked.
class schema_check_mode : public dispatch_mode<schema_check_mode> {
public:
  static constexpr bool supports_higher_order_operators = true;
  /// Return the number of calls that were checked, and of calls without a schema.
  int checked() const { return checked_.load(std::memory_order_relaxed); }
  int unchecked() const { return unchecked_.load(std::memory_order_relaxed); }

  boxed_args process(boxed_hop const& op, boxed_args const& x) { return op(x); }
  tensor process(boxed_op const& op, boxed_args const& x) {
    if (!*op.schema()) {
      unchecked_.fetch_add(1, std::memory_order_relaxed);
      return op(x);
    }
    operator_schema const s = operator_schema::parse(std::string(op.name()) + op.schema());
    std::vector<operand> before;
    for (auto const& t : x)
      before.push_back({detail::innermost_tensor(t), detail::row_major_bytes(detail::innermost_tensor(t)),
                        t.defined() ? detail::innermost_tensor(t).version() : 0});
    std::vector<schema_argument const*> declared; // of operand k; numbers (`Scalar`) are operands too
    for (auto const& a : s.arguments)
      if (a.is_tensor() || (a.type.rfind("Scalar", 0) == 0 && a.type.rfind("ScalarType", 0) != 0))
        declared.push_back(&a);
    tensor y = op(x);
    checked_.fetch_add(1, std::memory_order_relaxed);
    if (declared.size() < before.size())
      refuse(s, "takes " + std::to_string(before.size()) + " operands, not " + std::to_string(declared.size()));
    for (std::size_t k = 0; k < before.size(); ++k) check_operand(s, *declared[k], before, declared, k);
    if (s.results.size() == 1 && y.defined())
      check_result(s, op, s.results[0], before, declared, detail::innermost_tensor(y));
    return y;
  }
  /// Passes calls on static values through: these have no storage to check.
  template <class Op, class... X>
    requires(!std::is_same_v<Op, boxed_op> && !std::is_same_v<Op, boxed_hop>)
  constexpr auto process(Op const& op, X const&... x) {
    return op(x...);
  }

private:
  struct operand {
    tensor value;
    std::vector<unsigned char> bytes;
    std::uint32_t version;
  };
  [[noreturn]] VARVE_COLD static void refuse(operator_schema const& s, std::string const& what) {
    refuse::with<schema_error>(("varve: " + to_string(s) + ": " + what).c_str());
  }
  static bool share(tensor const& a, tensor const& b) { return a.defined() && b.defined() && a.shares_storage(b); }

  static void check_operand(operator_schema const& s, schema_argument const& a, std::vector<operand> const& all,
                            std::vector<schema_argument const*> const& declared, std::size_t k) {
    operand const& o = all[k];
    if (!o.value.defined()) return;
    bool const raised = o.value.version() != o.version, written = detail::row_major_bytes(o.value) != o.bytes;
    if (a.mutated) {
      if (written && !raised) refuse(s, "argument " + a.name + " was mutated, but its version counter was not raised");
      return;
    }
    if (!raised && !written) return;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (declared[i]->mutated && share(all[i].value, o.value))
        return; // a declared argument has the same memory, which may be written
    refuse(s, "argument " + a.name + " is not declared mutated but was" +
                  (written ? "" : ": its version counter was raised"));
  }
  static void check_result(operator_schema const& s, boxed_op const& op, schema_argument const& r,
                           std::vector<operand> const& all, std::vector<schema_argument const*> const& declared,
                           tensor const& y) {
    auto const of_set = [&](std::size_t k) { return !r.alias.empty() && declared[k]->alias == r.alias; };
    bool allowed = false;
    for (std::size_t k = 0; k < all.size(); ++k) allowed = allowed || (of_set(k) && share(all[k].value, y));
    if (allowed) return;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (share(all[k].value, y))
        refuse(s, "argument " + declared[k]->name + " is not declared to alias the result, but shares its storage");
    for (std::size_t k = 0; k < all.size(); ++k)
      if (of_set(k) && all[k].value.defined() && expressible(op, all, k))
        refuse(s, "the result is declared to " + std::string(r.mutated ? "be" : "alias") + " argument " +
                      declared[k]->name + ", but shares no storage with it");
  }
  /// True if strides can express the result. If so, the operator's shape rule makes a view.
  static bool expressible(boxed_op const& op, std::vector<operand> const& all, std::size_t k) {
    if (!op.table->meta) return true;
    boxed_args inner;
    for (auto const& o : all) inner.push_back(o.value);
    return share(op.table->meta(*op.at, inner), all[k].value);
  }
  std::atomic<int> checked_{0}, unchecked_{0};
};

} // namespace varve

#pragma GCC diagnostic pop
