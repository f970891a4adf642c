// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/dispatch/schema.hpp>
#include <varve/mode/call_record.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace varve {

/// Returns the abbreviation of a dtype as in PyTorch's logging mode: `f32`, `i64`, `b8`.
constexpr char const* short_name(dtype t) {
  constexpr char const* names[] = {"b8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  return names[static_cast<int>(t)];
}
/// Returns dtype and sizes as text: `f32[2, 3]`, or `f32[2, 3]@1` when seen through a transform of level 1.
inline std::string to_string(value_record const& v) {
  return short_name(v.type) + to_string(v.sizes) + (v.level ? "@" + std::to_string(v.level) : "");
}

namespace detail {
/// Formats an attribute by its type: a dtype by name, a flag as true or false, one integer without brackets.
inline std::string attribute_text(schema_argument const& a, dims const& v) {
  if (a.type == "ScalarType" && v.n == 1) return name(static_cast<dtype>(v[0]));
  if (a.type == "bool" && v.n == 1) return v[0] ? "true" : "false";
  if (a.type == "int" && v.n == 1) return std::to_string(v[0]);
  return to_string(v);
}
/// Formats a call as `name(operands, attribute=value)`; `text(k)` formats the operands.
template <class F>
std::string call_text(call_record const& c, F const& text) {
  operator_schema s;
  if (*c.schema) s = operator_schema::parse(std::string(c.name) + c.schema);
  std::string r = c.name;
  int operand = 0, attribute = 0;
  char const* separator = "(";
  auto const next = [&]() -> std::string& { return r += std::exchange(separator, ", "); };
  for (auto const& a : s.arguments) {
    bool const is_operand = a.is_tensor() || (a.type.rfind("Scalar", 0) == 0 && a.type.rfind("ScalarType", 0) != 0);
    if (is_operand && operand < c.operand_count) next() += text(operand++);
    else if (!is_operand && attribute < c.at.count)
      next() += a.name + "=" + attribute_text(a, c.at[attribute]), ++attribute;
  }
  while (operand < c.operand_count) next() += text(operand++);
  while (attribute < c.at.count) next() += to_string(c.at[attribute++]);
  return r + (*separator == '(' ? "()" : ")");
}
inline std::string operand_text(value_record const& v) { return v.number ? number_text(v.value, 6) : to_string(v); }
} // namespace detail

/// Formats a call on one line: `f32[] = sum(f32[3], dim=[0], keepdim=false)`.
inline std::string to_string(call_record const& c) {
  std::string r;
  for (int k = 0; k < c.result_count; ++k) r += (k ? ", " : "") + to_string(c.results[k]);
  return (c.result_count ? r + " = " : r) +
         detail::call_text(c, [&](int k) { return detail::operand_text(c.operands[k]); });
}

/// A log of calls in the format of `torch.testing._internal.logging_tensor`. Every tensor has a number during its
/// lifetime.
///
///   $2: f64[3] = mul($0, $1)
///   $3: f64[1, 3] = reshape($2, shape=[1, 3])   # view of $2
///   $2 = add_($2, 1)   # writes $2
///
/// To keep numbers unique, the log owns the tensors that it has numbered. Before each new line it releases those that
/// are not used elsewhere; `clear()` releases all. With `identities = false` it owns nothing and writes types instead
/// of numbers. Several modes and threads may write to one log.
class call_log {
public:
  /// Collects `lines`, or writes to a file if one is given.
  explicit call_log(std::FILE* to = nullptr, bool identities = true) : to_(to), identities_(identities) {}
  std::vector<std::string> lines;

  /// Logs a tensor that no logged operator made: `$0: f64[3] = input('x')`.
  void log_input(char const* name, tensor const& t) {
    lock_([&] {
      write((identities_ ? "$" + std::to_string(number_of(t)) + ": " : "") + to_string(detail::describe_value(t)) +
            " = input('" + name + "')");
    });
  }
  /// Logs a call. A call without results threw an exception.
  void operator()(call_record const& c) {
    lock_([&] { write(line(c)); });
  }
  /// Returns all lines, each followed by a newline.
  std::string text() const {
    std::string r;
    for (auto const& l : lines) r += l + "\n";
    return r;
  }
  /// Returns the names of the operators in the order of their calls.
  std::vector<std::string> const& operators() const { return operators_; }
  void clear() {
    lines.clear();
    operators_.clear();
    known_.clear();
    next_ = 0;
  }

private:
  struct known_tensor {
    tensor handle;
    int number;
  };
  int number_of(tensor const& t) {
    for (auto const& k : known_)
      if (k.handle.is(t)) return k.number;
    known_.push_back({t, next_});
    return next_++;
  }
  std::string line(call_record const& c) {
    std::erase_if(known_,
                  [](known_tensor const& k) { return k.handle.id()->refs.n.load(std::memory_order_acquire) == 1; });
    operators_.emplace_back(c.name);
    bool const own = identities_;
    auto const operand = [&](int k) {
      value_record const& v = c.operands[k];
      return v.handle && v.handle->defined() && own && !v.number ? "$" + std::to_string(number_of(*v.handle))
                                                                 : detail::operand_text(v);
    };
    std::string const call = detail::call_text(c, operand);
    if (!c.result_count && c.kind != op_kind::hop) return call + "   # threw";
    std::string r, notes;
    for (int k = 0; k < c.result_count; ++k) {
      value_record const& v = c.results[k];
      std::string const type = to_string(v);
      bool const known = v.handle && v.handle->defined() && own && !v.number;
      r += k ? ", " : "";
      if (v.same) r += operand(v.alias);
      else r += known ? "$" + std::to_string(number_of(*v.handle)) + ": " + type : type;
      if (v.alias >= 0)
        notes += (notes.empty() ? "   # " : ", ") +
                 std::string(!v.same                       ? "view of "
                             : c.kind == op_kind::mutation ? "writes "
                                                           : "is ") +
                 (known ? operand(v.alias) : "operand " + std::to_string(v.alias));
    }
    return r + (r.empty() ? "" : " = ") + call + notes;
  }
  void write(std::string const& l) {
    if (to_) std::fprintf(to_, "%s\n", l.c_str());
    else lines.push_back(l);
  }
  std::FILE* to_;
  bool identities_;
  int next_ = 0;
  std::vector<known_tensor> known_;
  std::vector<std::string> operators_;
  detail::spin_lock lock_; // `parallel_for` and `carry` share one mode between threads
};

} // namespace varve

#pragma GCC diagnostic pop
