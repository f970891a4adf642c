// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/in_place.hpp>

namespace varve {

namespace detail {
[[noreturn]] VARVE_COLD inline void refuse_out(char const* op) {
  refuse::with<autograd_error>(
      (std::string("varve: ") + op +
       ": functions with out=... arguments don't support automatic differentiation, but one of the "
       "arguments requires grad; use the result of the operator, or no_grad")
          .c_str());
}
/// True if the operator only writes into a tensor of exactly the result's dtype. Elementwise operators, `sum` and `cat`
/// convert instead.
template <class Op>
consteval bool keeps_dtype_of_out() {
  if constexpr (requires { Op::keeps_dtype_of_out; }) return Op::keeps_dtype_of_out;
  else if constexpr (std::is_same_v<Op, sum_t>) return false;
  else if constexpr (requires { rules<Op>::kind; })
    return rules<Op>::kind == op_kind::indexing || rules<Op>::kind == op_kind::reduction ||
           rules<Op>::kind == op_kind::contraction || rules<Op>::kind == op_kind::effect;
  else return false;
}
/// The tensor that results are written into; called with an operator and its operands.
class out_argument {
public:
  explicit out_argument(tensor const& t) : out_(t) {}
  template <class Op, class... X>
  tensor operator()(Op const& op, X const&... x) const {
    std::vector<dependent<tensor, Op>> operands;
    auto const keep = [&](auto const& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) operands.push_back(v);
    };
    (keep(x), ...);
    return give(Op::op_name, keeps_dtype_of_out<Op>(), operands, [&] { return dependent<tensor, Op>(op(x...)); });
  }
  /// Writes the result of `run()`, which computes with the operands, into the tensor.
  template <class T, class F>
  T give(char const* name, bool keeps_dtype, std::vector<T> const& operands, F const& run) const {
    bool tracked = out_.has_history();
    for (T const& x : operands) tracked = tracked || (x.defined() && x.has_history());
    if (this_thread_state.grad_mode && !this_thread_inference && tracked) refuse_out(name);
    T const y = run();
    T const to = out_;
    if (!(to.sizes() == y.sizes()) && to.numel() != 0) refuse::shapes_do_not_match(name, to.sizes(), y.sizes());
    if (category(y.dtype()) > category(to.dtype()) || (keeps_dtype && y.dtype() != to.dtype()))
      refuse::with<dtype_error>((std::string("varve: ") + name + ": a result of dtype " + varve::name(y.dtype()) +
                                 " cannot be written into " + varve::name(to.dtype()))
                                    .c_str());
    if (to.sizes() == y.sizes()) copy_(to, y);
    else {
      T const memory = varve::to(y, to.dtype());
      bool shares = false; // set_ must not make it a view of an operand
      for (T const& x : operands) shares = shares || (x.defined() && memory.shares_storage(x));
      set_(to, shares ? T(clone(memory)) : memory);
    }
    return to;
  }

private:
  tensor out_;
};
} // namespace detail

/// Writes the result of an operator into an existing tensor and returns that: `out(y)(mul, a, b)` is
/// `torch.mul(a, b, out=y)`. An empty `y` takes the result's shape. Otherwise shape and dtype must fit as for in-place
/// operators; most reductions, contractions and indexing operators require exactly the result's dtype. Throws
/// `autograd_error` if gradients are recorded and an operand or `y` requires them.
inline detail::out_argument out(tensor const& y) { return detail::out_argument(y); }

} // namespace varve
