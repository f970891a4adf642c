// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_sizes.hpp>

#include <algorithm>

namespace varve::c99 {
using cpp::buffer_name;
using cpp::writer;

/// What all functions of a text share.
struct context {
  language& c;
  /// The type of loop indices.
  std::string index;
  /// True if values are named by the nodes of the graph, and comments name these.
  bool nodes;
  size_arguments& sizes;
};

/// True if a temporary is a local variable: it has one element.
inline bool is_local(fusion::program const& p, int k) {
  fusion::buffer const& b = p.buffers[k];
  return b.where == fusion::place::arena && b.elements == 1;
}
/// Returns an element of a buffer, and the address of its first one.
inline std::string element(fusion::program const& p, int k, std::string const& at) {
  return is_local(p, k) ? buffer_name(p, k) : buffer_name(p, k) + "[" + at + "]";
}
inline std::string address(fusion::program const& p, int k) { return (is_local(p, k) ? "&" : "") + buffer_name(p, k); }

/// Writes one loop nest of a program in C. Each value is computed in its own type. A value that is used once becomes a
/// part of the expression that uses it.
class loop_writer : cpp::nest_reader {
public:
  /// Writes loop nest `b` of program `p`. Returns the number of the variables that it has at a time.
  VARVE_COLD static int write(writer& out, context& c, fusion::program const& p, fusion::body const& b) {
    loop_writer w{out, c, p, b};
    w.find_used();
    w.count_uses();
    w.level(0);
    return w.variables;
  }
  /// Marks the buffers that the text of loop nest `b` reads.
  VARVE_COLD static void mark_reads(context& c, fusion::program const& p, fusion::body const& b,
                                    std::vector<char>& read) {
    writer none;
    loop_writer w{none, c, p, b};
    if (w.is_over_nothing()) return;
    w.find_used();
    auto mark = [&](fusion::step const& s) {
      if (s.access >= 0)
        if (int const k = p.accesses[s.access].buffer; k >= 0) read[static_cast<std::size_t>(k)] = 1;
    };
    for (std::size_t k = 0; k < w.now.size(); ++k)
      if (w.used_now[k]) mark(w.now_step(k));
    for (std::size_t k = 0; k < w.fixed.size(); ++k)
      if (w.used_fixed[k]) mark(w.fixed_step(k));
  }

private:
  writer& out;
  context& c;
  std::vector<expression> fixed, now;
  std::vector<int> fixed_uses, now_uses;
  std::vector<int> taken{}; // nodes whose names are already used
  int variables = 0;
  static constexpr std::size_t longest = 72; // characters of an operand that has no name
  static constexpr int many = 1 << 20;

  loop_writer(writer& out_, context& c_, fusion::program const& p_, fusion::body const& b_)
      : nest_reader(p_, b_), out(out_), c(c_) {
    fixed.resize(used_fixed.size()), now.resize(used_now.size());
    fixed_uses.resize(fixed.size()), now_uses.resize(now.size());
  }
  expression const& value(int s) const {
    return s >= 0 ? now[static_cast<std::size_t>(s)] : fixed[static_cast<std::size_t>(~s)];
  }
  /// Returns how often the text of a step contains operand `k`.
  int occurrences(fusion::step const& s, int k) const {
    if (s.kind != fusion::step_kind::op) return 1;
    std::string const form = language::form(*s.op), name = "$" + std::to_string(k);
    int n = form.empty();
    for (std::size_t at = form.find(name); at != std::string::npos; at = form.find(name, at + 1)) ++n;
    return n;
  }
  /// Counts the uses of each step. One before the loop whose value the loop uses needs a name.
  void count_uses() {
    auto use = [&](int s, bool within_loop, int times) {
      if (s >= 0) now_uses[static_cast<std::size_t>(s)] += times;
      else fixed_uses[static_cast<std::size_t>(~s)] += within_loop ? many : times;
    };
    for (int k = 0; k < b.sink_count; ++k) {
      use(sink(k).a, true, 1);
      if (sink(k).product) use(sink(k).b, true, 1);
    }
    for (std::size_t k = 0; k < now.size(); ++k)
      for (int q = 0; used_now[k] && q < now_step(k).count; ++q)
        use(operand(now_step(k), q), true, occurrences(now_step(k), q));
    for (std::size_t k = 0; k < fixed.size(); ++k)
      for (int q = 0; used_fixed[k] && q < fixed_step(k).count; ++q)
        use(operand(fixed_step(k), q), false, occurrences(fixed_step(k), q));
  }
  /// True if a loop takes no steps. Its text is then only the results of folds, which are neutral elements.
  bool is_over_nothing() const { return std::find(b.extent, b.extent + b.rank, 0) != b.extent + b.rank; }
  std::string index(fusion::access const& a) const { return nest_reader::index(a, c.sizes); }
  std::string element(fusion::access const& a) const { return c99::element(p, a.buffer, index(a)); }

  /// Returns an element of memory; one of a constant at a known address is a number.
  expression loaded(fusion::access const& a) const {
    fusion::buffer const& from = p.buffers[a.buffer];
    return is_known(a) ? literal(from.type, p.constants[from.number + a.offset]) : expression{element(a)};
  }
  bool is_known(fusion::access const& a) const {
    bool known = p.buffers[a.buffer].where == fusion::place::constant && !fusion::is_run_time(a.offset);
    for (int l = 0; l < b.rank; ++l) known = known && (a.stride[l] == 0 || b.extent[l] == 1);
    return known;
  }
  expression counted(fusion::step const& s) const {
    fusion::access const& a = p.accesses[s.access];
    std::string const i = index(a);
    bool is_number = !fusion::is_run_time(a.offset);
    for (int l = 0; l < b.rank; ++l) is_number = is_number && (a.stride[l] == 0 || b.extent[l] == 1);
    if (s.count) return {within(value(s.in[0]), binding::sum) + " == " + i, binding::choice}; // one_hot
    if (is_number) return literal(s.type, static_cast<double>(a.offset));
    return {"(" + std::string(type_text(s.type)) + ")" +
                (std::all_of(i.begin(), i.end(),
                             [](char d) { return std::isalnum(static_cast<unsigned char>(d)) || d == '_'; })
                     ? i
                     : "(" + i + ")"),
            binding::unary};
  }
  expression product_sum(expression const& x, expression const& y, expression const& z, dtype t, bool minus) const {
    return c.c.arithmetic(minus ? operator_class::sub : operator_class::add, t, z,
                          c.c.arithmetic(operator_class::mul, t, x, y));
  }
  /// Returns the combination of several terms as two partial results, which take every other term each.
  expression gathered(fusion::step const& s) const {
    bool const dot = s.kind == fusion::step_kind::dot;
    int const terms = dot ? s.count / 2 : s.count;
    auto both = [&](expression const& x, expression const& y) {
      if (s.kind == fusion::step_kind::greatest) return c.c.call("maximum", s.type, {x, y});
      if (s.kind == fusion::step_kind::least) return c.c.call("minimum", s.type, {x, y});
      return c.c.arithmetic(operator_class::add, s.type, x, y);
    };
    auto term = [&](int k) { // flags and small integers are summed as int64
      return c.c.cast(s.type, step_of(operand(s, k)).type, value(operand(s, k)));
    };
    expression part[2];
    for (int k = 0; k < terms; ++k) {
      expression& r = part[k % 2];
      expression const x = dot ? c.c.arithmetic(operator_class::mul, s.type, term(2 * k), term(2 * k + 1)) : term(k);
      r = k < 2 ? x : both(r, x);
    }
    if (terms == 0) return literal(s.type, 0);
    return terms == 1 ? part[0] : both(part[0], part[1]);
  }
  expression computed(fusion::step const& s) const {
    using enum fusion::step_kind;
    switch (s.kind) {
    case none: // a field of a record
    case load:
    case records:
      return loaded(p.accesses[s.access]);
    case constant:
      return literal(s.type, s.value);
    case fusion::step_kind::index:
      return counted(s);
    case convert:
      if (fusion::step const& from = step_of(s.in[0]); from.kind == constant)
        return literal(s.type, kernel::converted(s.type, from.value, from.type));
      return c.c.cast(s.type, step_of(s.in[0]).type, value(s.in[0]));
    case fma:
    case fnma:
      return product_sum(value(s.in[0]), value(s.in[1]), value(s.in[2]), s.type, s.kind == fnma);
    case sum:
    case greatest:
    case least:
    case dot:
      return gathered(s);
    default:
      break;
    }
    if (s.op->kind != op_kind::pointwise || (!s.op->own && !s.op->c99))
      refuse::argument_is_invalid("emit_c", (std::string("operator ") + s.op->name +
                                             " has no text in C; state rules<>::c99, or write it in other operators")
                                                .c_str());
    std::vector<expression> in;
    for (int k = 0; k < s.count; ++k) in.push_back(value(operand(s, k)));
    return c.c.operation(*s.op, step_of(operand(s, s.count - 1)).type, in);
  }
  /// True if the text of a step stands where its value is used.
  bool is_part(fusion::step const& s, expression const& x, int uses) const {
    if (uses == 1) return x.text.size() <= longest;
    bool const loads = s.kind == fusion::step_kind::load || s.kind == fusion::step_kind::none ||
                       s.kind == fusion::step_kind::records,
               is_number = s.kind == fusion::step_kind::constant || (loads && is_known(p.accesses[s.access])),
               is_read = loads || is_number;
    if (uses >= many && !is_number) return false;             // computed before the loop
    std::size_t const n = x.text.size(), name = 3, line = 24; // characters
    return is_read && (n <= name || static_cast<std::size_t>(uses % many) * (n - name) < line + n);
  }
  void steps(std::vector<expression>& values, std::vector<char> const& used, std::vector<int> const& uses, int first) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!used[k]) continue;
      fusion::step const& s = p.steps[first + static_cast<int>(k)];
      values[k] = computed(s);
      if (is_part(s, values[k], uses[k])) continue;
      std::string name = "v" + text(variables);
      if (c.nodes) {
        long const again = std::count(taken.begin(), taken.end(), s.node);
        taken.push_back(s.node);
        name = "v" + text(s.node) + (again ? "_" + text(again) : "");
      }
      ++variables;
      out.line("const " + std::string(type_text(s.type)) + " " + name + " = " + values[k].text + ";");
      values[k] = {name};
    }
  }

  expression in_type_of(dtype t, int slot) const { return c.c.cast(t, step_of(slot).type, value(slot)); }
  /// Returns `r` combined with the value of a sink.
  expression folded(fusion::sink const& s, std::string const& r, dtype t) const {
    if (s.product) return product_sum(in_type_of(t, s.a), in_type_of(t, s.b), {r}, t, s.minus);
    return both(s, {r}, in_type_of(t, s.a));
  }
  expression both(fusion::sink const& s, expression const& x, expression const& y) const {
    dtype const t = target_type(s);
    if (s.kind == fusion::sink_kind::sum) return c.c.arithmetic(operator_class::add, t, x, y);
    return c.c.call(s.kind == fusion::sink_kind::greatest ? "maximum" : "minimum", t, {x, y});
  }
  void leave(int k) {
    fusion::sink const& s = sink(k);
    dtype const t = target_type(s);
    std::string const to =
        s.kind == fusion::sink_kind::store || s.level < 0 ? element(p.accesses[s.access]) : "r" + text(k);
    if (s.kind == fusion::sink_kind::store) out.line(to + " = " + in_type_of(t, s.a).text + ";");
    else out.line(to + " = " + folded(s, to, t).text + ";");
  }
  void finish(int k) {
    fusion::sink const& s = sink(k);
    std::string const there = element(p.accesses[s.access]), r = "r" + text(k);
    out.line(there + " = " + (s.accumulate ? both(s, {there}, {r}).text : r) + ";");
  }
  void level(int l) {
    auto accumulates = [&](int k) { return sink(k).kind != fusion::sink_kind::store && sink(k).level == l; };
    for (int k = 0; k < b.sink_count; ++k)
      if (dtype const t = target_type(sink(k)); accumulates(k)) {
        out.line(std::string(type_text(t)) + " r" + text(k) + " = " + neutral(sink(k).kind, t).text + ";");
        ++variables;
      }
    if (l == b.rank - 1 && !is_over_nothing()) steps(fixed, used_fixed, fixed_uses, b.fixed_first);
    if (l == b.rank) {
      steps(now, used_now, now_uses, b.step_first);
      for (int k = 0; k < b.sink_count; ++k) leave(k);
    } else if (b.extent[l] != 0) {
      std::string const i = "i" + text(l);
      out.open("for (" + c.index + " " + i + " = 0; " + i + " < " + c.sizes(b.extent[l]) + "; ++" + i + ") {");
      level(l + 1);
      out.close();
    }
    for (int k = 0; k < b.sink_count; ++k)
      if (accumulates(k)) finish(k);
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
