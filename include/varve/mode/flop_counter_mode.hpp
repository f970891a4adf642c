// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/mode/call_record.hpp>

#include <cstdio>
#include <string>

namespace varve {

/// Returns the floating-point operations of a matrix product: `2 m n k` for each matrix of the batch
/// (`torch.utils.flop_counter.mm_flop`).
constexpr index_t mm_flop(call_record const& c) {
  dims const& a = c.operands[0].sizes;
  return a.n < 2 ? extent(0) : 2 * numel(c.results[0].sizes) * a[a.n - (c.at[0].n > 0 && c.at[0][0] ? 2 : 1)];
}
/// Returns the floating-point operations of a convolution: `2 m` for each position of the kernel in each sample, where
/// m is the number of elements of the weight (`torch.utils.flop_counter.conv_flop`).
constexpr index_t conv_flop(call_record const& c) {
  dims const& places = (c.at[2][c.at[0].n] != 0 ? c.operands[0] : c.results[0]).sizes;
  return 2 * places[0] * numel(places.sub(2, places.n)) * numel(c.operands[1].sizes);
}
/// Returns the floating-point operations of an operator that is no contraction. Elementwise operators have one for each
/// element of the result, reductions one for each element that they read, most others none.
constexpr index_t elementwise_flop(call_record const& c) {
  if (c.kind == op_kind::pointwise || (c.kind == op_kind::mutation && !detail::same_text(c.name, "copy_")))
    return numel(c.results[0].sizes);
  if (c.kind == op_kind::reduction) return numel(c.operands[0].sizes);
  return detail::same_text(c.name, "scatter_add") ? numel(c.operands[c.operand_count - 1].sizes) : extent(0);
}
/// True if a call only shows its operand in another way and moves no data. For tensors the storage decides, for static
/// values, which have none, the operator's schema.
constexpr bool moves_nothing(call_record const& c) {
  if (c.kind == op_kind::hop) return true; // the operators in its functions are counted
  if (c.results[0].handle) return c.results[0].alias >= 0 && c.kind != op_kind::mutation;
  if (c.kind != op_kind::view) return false;
  for (char const* p = c.schema; *p; ++p)
    if (p[0] == '(' && p[1] == 'a' && p[2] == ')') return true;
  return false;
}

/// A mode that counts floating-point operations, and the bytes that operators read and write, by operator
/// (`torch.utils.flop_counter.FlopCounterMode`).
///
///   flop_counter_mode counter;
///   { mode_guard const on{counter}; loss = train_step(w, x); }
///   std::puts(counter.get_table().c_str());
///
/// As in PyTorch, only contractions count, unless `elementwise` is set. It is constexpr:
///
///   static_assert([] { flop_counter_mode m; (void)with(m, f, array<float, 2, 3>{}, array<float, 3, 4>{}); return
///   m.get_total_flops(); }() == 48);
class flop_counter_mode : public dispatch_mode<flop_counter_mode> {
public:
  static constexpr bool supports_higher_order_operators = true;
  /// A function that returns the cost of a call whose results are known.
  using formula = index_t (*)(call_record const&);
  /// The counts of one operator.
  struct row {
    char name[40] = {}; // a copy: the operator's library may be unloaded when this is read
    index_t calls = 0, flops = 0, bytes_read = 0, bytes_written = 0;
  };
  /// The number of operators that have rows of their own; further ones share the last row, "(others)".
  static constexpr int most_rows = 96;
  static constexpr int most_formulas = 16;

  constexpr explicit flop_counter_mode(bool elementwise = false) : elementwise_(elementwise) {}

  /// Sets the formula of an operator, for example of one of a library (`custom_mapping`). The name must live as long as
  /// the mode.
  constexpr flop_counter_mode& register_flop_formula(char const* op, formula f) {
    if (formulas_ == most_formulas) refuse::argument_is_invalid("flop_counter_mode", "more than 16 formulas");
    custom_[formulas_++] = {op, f};
    return *this;
  }
  /// Returns the floating-point operations of a call by the rules of this mode.
  constexpr index_t flops_of(call_record const& c) const {
    for (int k = formulas_; k-- > 0;)
      if (detail::same_text(custom_[k].op, c.name)) return custom_[k].f(c);
    if (c.kind == op_kind::contraction) return detail::same_text(c.name, "convolution") ? conv_flop(c) : mm_flop(c);
    return elementwise_ ? elementwise_flop(c) : 0;
  }

  constexpr index_t get_total_flops() const { return total().flops; }
  constexpr index_t get_total_bytes() const { return total().bytes_read + total().bytes_written; }
  /// Returns the sum of all rows.
  constexpr row total() const {
    row r;
    for (row const& o : *this) {
      r.calls += o.calls;
      r.flops += o.flops;
      r.bytes_read += o.bytes_read;
      r.bytes_written += o.bytes_written;
    }
    return r;
  }
  /// Returns the row of an operator; all zero if it was not called (`get_flop_counts`).
  constexpr row get_flop_counts(char const* op) const {
    for (row const& r : *this)
      if (detail::same_text(r.name, op)) return r;
    return {};
  }
  /// Returns the rows, in the order in which operators were first called.
  constexpr row const* begin() const { return rows_; }
  constexpr row const* end() const { return rows_ + count_; }
  constexpr void reset() {
    for (row& r : rows_) r = {};
    count_ = 0;
  }
  /// Returns a table of all rows, for a terminal.
  std::string get_table() const {
    char s[160];
    std::string r;
    row const all = total();
    auto const line = [&](char const* name, row const& o) {
      double const share = all.flops ? 100.0 * static_cast<double>(o.flops) / static_cast<double>(all.flops) : 0;
      std::snprintf(s, sizeof s, "%-24s %8lld %14lld %7s%% %14lld %14lld\n", name, static_cast<long long>(o.calls),
                    static_cast<long long>(o.flops), detail::fixed_text(share, 2).c_str(),
                    static_cast<long long>(o.bytes_read), static_cast<long long>(o.bytes_written));
      r += s;
    };
    std::snprintf(s, sizeof s, "%-24s %8s %14s %8s %14s %14s\n", "operator", "calls", "FLOP", "% total", "bytes read",
                  "bytes written");
    r += s;
    r += std::string(r.size() - 1, '-') + "\n";
    line("Global", all);
    for (row const& o : *this) line((std::string(" - ") + o.name).c_str(), o);
    return r;
  }

  constexpr auto process(auto const& op, auto const&... args) {
    call_record call = describe_call(op, args...);
    auto y = op(args...);
    describe_results(call, y);
    lock_([&] { count(call); });
    return y;
  }

private:
  constexpr void count(call_record const& c) {
    row& r = row_of(c.name);
    ++r.calls;
    r.flops += flops_of(c);
    if (moves_nothing(c)) return;
    bool const overwrites = detail::same_text(c.name, "copy_"); // reads only its source
    for (int k = overwrites ? 1 : 0; k < c.operand_count; ++k)
      if (!c.operands[k].number || c.operands[k].sizes.n) r.bytes_read += c.operands[k].bytes();
    for (int k = 0; k < c.result_count; ++k) r.bytes_written += c.results[k].bytes();
  }
  constexpr row& row_of(char const* name) {
    constexpr int longest = static_cast<int>(sizeof(row::name)) - 1;
    auto const is = [&](row const& r) {
      int k = 0;
      while (k < longest && name[k] && r.name[k] == name[k]) ++k;
      return k == longest || (r.name[k] == 0 && name[k] == 0);
    };
    for (int k = 0; k < count_; ++k)
      if (is(rows_[k])) return rows_[k];
    if (count_ == most_rows) return rows_[most_rows - 1];
    row& r = rows_[count_++];
    char const* const text = count_ == most_rows ? "(others)" : name;
    for (int k = 0; k < longest && text[k]; ++k) r.name[k] = text[k];
    return r;
  }
  struct custom {
    char const* op = nullptr;
    formula f = nullptr;
  };
  row rows_[most_rows]{};
  custom custom_[most_formulas]{};
  int count_ = 0, formulas_ = 0;
  bool elementwise_;
  detail::spin_lock lock_; // `parallel_for` and `carry` share one mode between threads
};

} // namespace varve

#pragma GCC diagnostic pop
