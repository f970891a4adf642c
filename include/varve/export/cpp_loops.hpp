// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/cpp_text.hpp>
#include <varve/export/plan_text.hpp>
#include <varve/op/add.hpp>
#include <varve/op/maximum.hpp>
#include <varve/op/mul.hpp>

namespace varve::cpp {

/// Writes one loop nest of a program in C++, the same loops that `fuse` would run. A body without a SIMD dimension
/// computes each value in its own type; others compute in batches.
class loop_writer : nest_reader {
public:
  /// Writes loop nest `b` of program `p`.
  VARVE_COLD static void write(writer& out, fusion::program const& p, fusion::body const& b) {
    loop_writer w{out, p, b};
    w.find_used();
    w.level(0);
  }

private:
  writer& out;
  bool batches;
  dtype lane_type;
  std::string lane, V; // the element type of batches and, in text, the batch
  std::vector<std::string> fixed, now;
  std::vector<int> taken; // nodes whose names are already used

  loop_writer(writer& out_, fusion::program const& p_, fusion::body const& b_)
      : nest_reader(p_, b_), out(out_), batches(b_.vector >= 0),
        lane_type(b_.type == fusion::lane::f32   ? dtype::float32
                  : b_.type == fusion::lane::i32 ? dtype::int32
                  : b_.type == fusion::lane::i64 ? dtype::int64
                                                 : dtype::float64),
        lane(type_text(lane_type)), V("batch<" + lane + ">") {
    fixed.resize(used_fixed.size()), now.resize(used_now.size());
  }
  std::string const& value(int s) const {
    return s >= 0 ? now[static_cast<std::size_t>(s)] : fixed[static_cast<std::size_t>(~s)];
  }
  std::string element(fusion::access const& a) const { return buffer_name(p, a.buffer) + "[" + index(a) + "]"; }
  std::string pointer(fusion::access const& a) const {
    std::string const i = index(a);
    return buffer_name(p, a.buffer) + (i == "0" ? "" : " + " + i);
  }
  index_t stride(fusion::access const& a) const { return batches ? a.stride[b.vector] : 0; }

  std::string loaded(fusion::step const& s) const {
    fusion::access const& a = p.accesses[s.access];
    dtype const t = p.buffers[a.buffer].type;
    if (!batches) return element(a);
    if (stride(a) == 0)
      return V + "(" + (t == lane_type ? element(a) : "static_cast<" + lane + ">(" + element(a) + ")") + ")";
    if (stride(a) == 1 && t == lane_type) return "kernel::load(" + pointer(a) + ", live)";
    return "kernel::load_strided<" + lane + ">(" + pointer(a) + ", " + text(stride(a)) + ", live)";
  }
  std::string counted(fusion::step const& s) const {
    fusion::access const& a = p.accesses[s.access];
    std::string const type = batches ? lane : type_text(s.count ? dtype::int64 : s.type);
    std::string i = "static_cast<" + type + ">(" + index(a) + ")";
    if (batches) i = stride(a) ? "kernel::ramp<" + lane + ">(" + i + ", " + text(stride(a)) + ")" : V + "(" + i + ")";
    if (s.count == 0) return i;
    return batches ? "kernel::from_mask<" + lane + ">(" + value(s.in[0]) + " == " + i + ")"
                   : value(s.in[0]) + " == " + i;
  }
  std::string converted(fusion::step const& s) const {
    std::string const x = value(s.in[0]);
    if (!batches)
      return s.type == step_of(s.in[0]).type ? x : "kernel::cast<" + std::string(type_text(s.type)) + ">(" + x + ")";
    if (s.type == s.from || s.from == dtype::bool_ || s.type == dtype::float64 ||
        (is_floating(s.type) && lane_type == dtype::float32))
      return x;
    if (s.type == dtype::bool_) return "kernel::ne(" + x + ", " + V + "(0))";
    return (is_floating(s.from) || is_floating(s.type) ? "kernel::through<" : "kernel::wrapped<") +
           std::string(type_text(s.type)) + ">(" + x + ")";
  }
  std::string product_sum(std::string const& a, std::string const& b_, std::string const& c, dtype t,
                          bool minus = false) const {
    if (batches)
      return std::string(minus ? "kernel::fnma<" : "kernel::fma<") + lane + ">(" + a + ", " + b_ + ", " + c + ")";
    return combined(minus ? handle<sub_t> : handle<add_t>, c, combined(handle<mul_t>, a, b_, t), t);
  }
  std::string combined(op_handle const& op, std::string const& x, std::string const& y, dtype t) const {
    return filled_in(text_of_operator(op, t, batches), "", [&](int k) { return k ? y : x; });
  }
  /// Returns the combination of several terms as two partial results, which take every other term each.
  std::string gathered(fusion::step const& s) const {
    bool const dot = s.kind == fusion::step_kind::dot;
    op_handle const& op = s.kind == fusion::step_kind::greatest ? handle<maximum_t>
                          : s.kind == fusion::step_kind::least  ? handle<minimum_t>
                                                                : handle<add_t>;
    int const terms = dot ? s.count / 2 : s.count;
    std::string part[2];
    auto term = [&](int k) {
      return batches ? value(operand(s, k)) : as(s.type, step_of(operand(s, k)).type, value(operand(s, k)));
    }; // flags and small integers are summed as int64
    for (int k = 0; k < terms; ++k) {
      std::string& r = part[k % 2];
      if (dot) {
        std::string const x = term(2 * k), y = term(2 * k + 1);
        r = r.empty() ? combined(handle<mul_t>, x, y, s.type) : product_sum(x, y, r, s.type);
      } else {
        std::string const x = term(k);
        r = r.empty() ? x : combined(op, r, x, s.type);
      }
    }
    if (terms == 0) return batches ? V + "(0)" : literal(s.type, 0);
    return terms == 1 ? part[0] : combined(op, part[0], terms > 3 ? "(" + part[1] + ")" : part[1], s.type);
  }
  std::string computed(fusion::step const& s) const {
    using enum fusion::step_kind;
    switch (s.kind) {
    case none: // a field of a record
    case load:
    case records:
      return loaded(s);
    case constant:
      return batches ? V + "(" + literal(lane_type, s.value) + ")" : literal(s.type, s.value);
    case fusion::step_kind::index:
      return counted(s);
    case convert:
      return converted(s);
    case fma:
    case fnma:
      return product_sum(value(s.in[0]), value(s.in[1]), value(s.in[2]), s.type, s.kind == fnma);
    case sum:
    case greatest:
    case least:
    case dot:
      return batches && s.wraps ? wrapped(s.type, gathered(s), "_any") : gathered(s);
    default:
      break;
    }
    dtype const t = step_of(operand(s, s.count - 1)).type;
    if (!s.op->own || s.op->kind != op_kind::pointwise)
      refuse::argument_is_invalid("emit_cpp", (std::string("operator ") + s.op->name +
                                               " is none of varve's elementwise operators, which emitted code can "
                                               "call; write it in other operators")
                                                  .c_str());
    std::string const form = text_of_operator(*s.op, t, batches);
    std::string const y = filled_in(form, batches ? V : type_text(t), [&](int k) { return value(operand(s, k)); });
    if (!batches || !s.wraps) return y;
    if (s.kind == fusion::step_kind::mul)
      return "kernel::wrapped_product<" + std::string(type_text(s.type)) + ">(" + value(s.in[0]) + ", " +
             value(s.in[s.count - 1]) + ")";
    return wrapped(s.type, y,
                   s.kind == fusion::step_kind::op && identify(*s.op) == operator_class::pointwise
                       ? "_any"
                       : ""); // a power has any magnitude
  }
  static std::string wrapped(dtype t, std::string const& x, char const* how = "") {
    return std::string("kernel::wrapped") + how + "<" + std::string(type_text(t)) + ">(" + x + ")";
  }
  void steps(std::vector<std::string>& names, std::vector<char> const& used, int first) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      fusion::step const& s = p.steps[first + static_cast<int>(k)];
      if (!used[k]) continue;
      int again = 0;
      for (int n : taken) again += n == s.node;
      taken.push_back(s.node);
      names[k] = "v" + text(s.node) + (again ? "_" + text(again) : "");
      out.line((batches ? V : std::string(type_text(s.type))) + " const " + names[k] + " = " + computed(s) + ";");
    }
  }

  static op_handle const& fold(fusion::sink const& s) {
    return s.kind == fusion::sink_kind::sum        ? handle<add_t>
           : s.kind == fusion::sink_kind::greatest ? handle<maximum_t>
                                                   : handle<minimum_t>;
  }
  std::string neutral(fusion::sink const& s, dtype t) const {
    std::string const limits = "std::numeric_limits<" + std::string(type_text(t)) + ">::";
    if (s.kind == fusion::sink_kind::sum) return literal(t, 0);
    if (is_floating(t)) return (s.kind == fusion::sink_kind::greatest ? "-" : "") + limits + "infinity()";
    return limits + (s.kind == fusion::sink_kind::greatest ? "lowest()" : "max()");
  }
  std::string as(dtype t, dtype from, std::string const& x) const {
    return t == from ? x : "kernel::cast<" + std::string(type_text(t)) + ">(" + x + ")";
  }
  /// True if the sum needs an integer counter because float lanes could not count far enough.
  bool counts(fusion::sink const& s) const {
    return batches && b.vector >= s.level && fusion::counts(b, s, target_type(s));
  }
  /// True if a sink has registers that live during loop `l`.
  bool accumulates(fusion::sink const& s, int l) const { return s.kind != fusion::sink_kind::store && s.level == l; }
  /// The number of registers that a reduction of the innermost loop alternates between, as `fuse` does.
  int ways() const {
    bool any = false;
    for (int k = 0; k < b.sink_count; ++k) any = any || alternates(sink(k));
    return any ? b.unroll : 1;
  }
  /// True if a reduction has one register for each of several vectors that take turns.
  bool alternates(fusion::sink const& s) const {
    return batches && b.unroll > 1 && b.vector == b.rank - 1 && s.kind != fusion::sink_kind::store && s.level >= 0 &&
           s.level <= b.vector && !counts(s);
  }
  /// Returns `r` combined with the value of a sink.
  std::string folded(fusion::sink const& s, std::string const& r) const {
    dtype const t = batches ? lane_type : target_type(s);
    auto in = [&](int slot) { return batches ? value(slot) : as(t, step_of(slot).type, value(slot)); };
    if (s.product) return product_sum(in(s.a), in(s.b), r, t, s.minus);
    return combined(fold(s), r, in(s.a), t);
  }
  std::string across(fusion::sink const& s, std::string const& x) const {
    if (s.kind == fusion::sink_kind::sum) return "kernel::reduce_sum(" + x + ")";
    return "kernel::reduce_lanes(" + x + ", [](" + lane + " a, " + lane + " b) { return kernel::" + fold(s).name +
           "(a, b); })";
  }
  void assign(fusion::sink const& s, std::string const& x) {
    dtype const t = target_type(s);
    out.line(element(p.accesses[s.access]) + " = " +
             (batches && !is_floating(t) ? wrapped(t, x) : as(t, batches ? lane_type : t, x)) + ";");
  }
  void store(fusion::sink const& s, std::string const& x) {
    fusion::access const& a = p.accesses[s.access];
    if (stride(a) == 1 && target_type(s) == lane_type) out.line("kernel::store(" + pointer(a) + ", " + x + ", live);");
    else out.line("kernel::store_strided(" + pointer(a) + ", " + text(stride(a)) + ", " + x + ", live);");
  }
  std::string stored(fusion::sink const& s) const {
    fusion::access const& a = p.accesses[s.access];
    if (stride(a) == 1 && target_type(s) == lane_type) return "kernel::load(" + pointer(a) + ", live)";
    return "kernel::load_strided<" + lane + ">(" + pointer(a) + ", " + text(stride(a)) + ", live)";
  }
  void leave(int k) {
    fusion::sink const& s = sink(k);
    std::string const acc = "r" + text(k) + (alternates(s) ? "[way]" : "");
    if (s.kind == fusion::sink_kind::store) {
      if (batches) store(s, value(s.a));
      else out.line(element(p.accesses[s.access]) + " = " + as(target_type(s), step_of(s.a).type, value(s.a)) + ";");
    } else if (counts(s)) {
      out.line(acc + " += static_cast<std::int64_t>(kernel::reduce_sum(kernel::keep(" +
               (s.product ? value(s.a) + " * " + value(s.b) : value(s.a)) + ", " + V + "(0), live)));");
    } else if (s.level >= 0) {
      out.line(acc + " = " +
               (batches && b.vector >= s.level ? "kernel::keep(" + folded(s, acc) + ", " + acc + ", live)"
                                               : folded(s, acc)) +
               ";");
    } else if (!batches) {
      assign(s, folded(s, element(p.accesses[s.access])));
    } else if (stride(p.accesses[s.access]) == 0) {
      std::string const none = V + "(" + neutral(s, lane_type) + ")";
      std::string const old = target_type(s) == lane_type
                                  ? element(p.accesses[s.access])
                                  : "static_cast<" + lane + ">(" + element(p.accesses[s.access]) + ")";
      assign(s, combined_scalar(s, old, across(s, "kernel::keep(" + folded(s, none) + ", " + none + ", live)")));
    } else {
      store(s, folded(s, stored(s)));
    }
  }
  std::string combined_scalar(fusion::sink const& s, std::string const& x, std::string const& y) const {
    return filled_in(text_of_operator(fold(s), lane_type, false), "", [&](int k) { return k ? y : x; });
  }
  void finish(int k) {
    fusion::sink const& s = sink(k);
    std::string acc = "r" + text(k);
    std::string const there = element(p.accesses[s.access]);
    if (alternates(s)) {
      acc += "[0]";
      for (int w = 1; w < b.unroll; ++w) acc = combined(fold(s), acc, "r" + text(k) + "[" + text(w) + "]", lane_type);
    }
    if (counts(s)) {
      out.line(there + (s.accumulate ? " += " : " = ") + acc + ";");
    } else if (!batches) {
      assign(s, s.accumulate ? combined(fold(s), there, acc, target_type(s)) : acc);
    } else if (b.vector >= s.level) {
      std::string const old = target_type(s) == lane_type ? there : "static_cast<" + lane + ">(" + there + ")";
      assign(s, s.accumulate ? combined_scalar(s, old, across(s, acc)) : across(s, acc));
    } else {
      store(s, s.accumulate ? combined(fold(s), stored(s), acc, lane_type) : acc);
    }
  }
  index_t points() const {
    index_t n = 1;
    for (int l = 0; l < b.rank; ++l) n *= b.extent[l];
    return n;
  }
  /// True if threads can share the outermost loop: its steps write separate elements, and there is enough work.
  bool can_share() const {
    bool r = points() >= fusion::shared_points && b.extent[0] > 1;
    for (int k = 0; k < b.sink_count; ++k)
      r = r && p.accesses[sink(k).access].stride[0] != 0 &&
          (sink(k).kind == fusion::sink_kind::store || sink(k).level != 0);
    return r;
  }
  /// Writes the registers of a reduction.
  void begin(int k) {
    fusion::sink const& s = sink(k);
    std::string const r = "r" + text(k);
    if (counts(s)) return out.line("std::int64_t " + r + " = 0;");
    if (!batches)
      return out.line(std::string(type_text(target_type(s))) + " " + r + " = " + neutral(s, target_type(s)) + ";");
    std::string const none = neutral(s, lane_type);
    std::string const type = alternates(s) ? "kernel::registers<" + lane + ", " + text(b.unroll) + ">" : V;
    out.line(type + " " + r + "(" + none + ");");
  }
  /// Writes the loop over vectors, loop `l`, and what is inside of it.
  void vector_loop(int l, bool shared) {
    std::string const i = "i" + text(l), n = text(b.extent[l]);
    if (ways() > 1)
      out.open("kernel::for_vectors_in_turn<" + lane + ", " + n + ", " + text(b.unroll) + ">(" +
               (shared ? "from, to" : "0, " + n) + ", [&](index_t " + i +
               ", auto live, auto way) __attribute__((always_inline)) {");
    else
      out.open("kernel::for_vectors<" + lane + ", " + n + ">(" + (shared ? "from, to, " : "") + "[&](index_t " + i +
               ", auto live) {");
    level(l + 1);
    out.close("});");
  }
  void level(int l) {
    for (int k = 0; k < b.sink_count; ++k)
      if (accumulates(sink(k), l)) begin(k);
    if (l == b.rank - 1) steps(fixed, used_fixed, b.fixed_first);
    if (l == b.rank) {
      steps(now, used_now, b.step_first);
      for (int k = 0; k < b.sink_count; ++k) leave(k);
    } else {
      bool const shared = l == 0 && can_share();
      if (shared)
        out.open("varve::fusion::share(" + text(b.extent[0]) + ", " + (b.vector == 0 ? "64" : "1") + ", " +
                 text(points()) + ", [&](index_t from, index_t to) {");
      std::string const i = "i" + text(l);
      if (l == b.vector) vector_loop(l, shared);
      else {
        out.open("for (index_t " + i + " = " + (shared ? "from" : "0") + "; " + i + " < " +
                 (shared ? "to" : text(b.extent[l])) + "; ++" + i + ") {");
        level(l + 1);
        out.close();
      }
      if (shared) out.close("});");
    }
    for (int k = 0; k < b.sink_count; ++k)
      if (accumulates(sink(k), l)) finish(k);
  }
};

} // namespace varve::cpp

#pragma GCC diagnostic pop
