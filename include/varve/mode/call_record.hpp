// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/spin_lock.hpp>
#include <varve/dispatch/handle.hpp>
#include <varve/dispatch/higher_order.hpp>
#include <varve/interpreter/mode.hpp>
#include <varve/op/full_like.hpp>

#include <cstring>
#include <vector>

namespace varve {

/// A description of one operand or result of a call, for static and for dynamic values.
struct value_record {
  dtype type = dtype::float32;
  dims sizes{};
  /// The level of the innermost transform that the value is seen through at the mode; 0 if there is none.
  int level = 0;
  /// True if it is a plain C++ number, whose value follows.
  bool number = false;
  double value = 0;
  /// For a result that is a tensor: the operand whose memory it shares, or -1, and whether it is that operand itself.
  int alias = -1;
  bool same = false;
  /// The tensor, valid during the call; null for static values, which have no identity.
  tensor const* handle = nullptr;

  constexpr index_t bytes() const { return numel(sizes) * itemsize(type); }
};

/// One call of an operator as data, the same for static values and tensors. Modes that only observe calls use it.
///
///   constexpr auto process(auto const& op, auto const&... args) {
///     call_record call = describe_call(op, args...);
///     auto y = op(args...);
///     describe_results(call, y);   // then call.name, call.operands[0].sizes, call.results[0].alias, ...
///     return y;
///   }
struct call_record {
  static constexpr int most = 8;
  char const* name = "";
  /// Arguments, defaults and aliasing in PyTorch's notation; empty if the operator has no schema.
  char const* schema = "";
  /// The kind of the operator. It is `placeholder` if unknown: for operators of a `library`, and for composites that a
  /// function mode sees.
  op_kind kind = op_kind::placeholder;
  attributes at{};
  value_record operands[most]{};
  int operand_count = 0;
  value_record results[most]{};
  int result_count = 0;
};

namespace detail {
template <class V>
constexpr value_record describe_value(V const& v) {
  value_record r;
  if constexpr (std::is_same_v<V, tensor>) {
    r.handle = &v;
    if (!v.defined()) return r;
    r.level = v.level();
    r.number = v.is_number();
    if (r.number && v.has_data() && v.numel() == 1) r.value = v.template item<double>();
  } else {
    r.level = level_of<V>;
    r.number = number<V>;
    if constexpr (number<V>) r.value = static_cast<double>(v);
  }
  r.type = dtype_of(v);
  r.sizes = to_dims(shape_of(v));
  return r;
}

/// Returns the tensor below all transforms.
inline tensor innermost_tensor(tensor t) {
  while (t.defined() && t.is_wrapped()) t = tensor(t.inner());
  return t;
}
/// Returns the elements of a tensor as bytes, in row-major order; empty if it has no data.
inline std::vector<unsigned char> row_major_bytes(tensor const& t) {
  std::vector<unsigned char> r;
  if (!t.defined() || !t.has_data()) return r;
  index_t const size = itemsize(t.dtype());
  r.resize(static_cast<std::size_t>(t.numel() * size));
  auto* to = r.data();
  for_each_index(t.sizes(), [&](dims const& i) {
    index_t o = 0;
    for (int d = 0; d < i.n; ++d) o += i[d] * t.strides()[d];
    std::memcpy(to, static_cast<unsigned char const*>(t.raw()) + o * size, static_cast<std::size_t>(size));
    to += size;
  });
  return r;
}

constexpr bool same_text(char const* a, char const* b) {
  for (; *a && *a == *b; ++a, ++b) {}
  return *a == *b;
}
} // namespace detail

/// Returns the kind of an operator; `placeholder` if it is unknown.
template <class Op>
constexpr op_kind kind_of_call(Op const& op) {
  if constexpr (std::is_same_v<Op, boxed_op>) return op.table->handle ? op.table->handle()->kind : op_kind::placeholder;
  else if constexpr (std::is_same_v<Op, boxed_hop>) return op_kind::hop;
  else return rules<typename Op::tag>::kind;
}

/// Describes a call before it is made, without the results. Operands after the eighth are omitted.
template <class Op, class... X>
constexpr call_record describe_call(Op const& op, X const&... x) {
  call_record r;
  r.name = op.name();
  r.kind = kind_of_call(op);
  if constexpr (std::is_same_v<Op, boxed_op>) {
    r.schema = op.schema();
    r.at = *op.at;
  } else if constexpr (!std::is_same_v<Op, boxed_hop>) {
    r.schema = detail::schema_of<rules<typename Op::tag>>();
    r.at = op.boxed();
  }
  for_each_value(
      [&](auto const& v) {
        if (r.operand_count < call_record::most) r.operands[r.operand_count++] = detail::describe_value(v);
      },
      x...);
  return r;
}

/// Adds the results of a call, and the operands that they share memory with.
template <class Y>
constexpr void describe_results(call_record& r, Y const& y) {
  for_each_value(
      [&](auto const& v) {
        if (r.result_count == call_record::most) return;
        value_record d = detail::describe_value(v);
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) {
          for (int k = 0; v.defined() && k < r.operand_count && !d.same; ++k) {
            tensor const* const t = r.operands[k].handle;
            if (!t || !t->defined() || !v.shares_storage(*t)) continue;
            d.same = v.is(*t);
            if (d.alias < 0 || d.same) d.alias = k;
          }
        }
        r.results[r.result_count++] = d;
      },
      y);
}

} // namespace varve

#pragma GCC diagnostic pop
