// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/cpp_loops.hpp>

namespace varve::cpp {

/// Writes the stages of a program that are no loop nests. Matrix products and convolutions become calls of their
/// kernels; operators that address memory by values become plain loops.
class call_writer {
public:
  /// Writes a `matmul` or `call` stage.
  VARVE_COLD static void write(writer& out, fusion::program const& p, fusion::stage const& s) {
    call_writer const w(out, p, s);
    switch (w.c.what) {
    case operator_class::mm:
      return w.product();
    case operator_class::slice_backward:
      return w.slice_backward();
    case operator_class::gather:
      return w.gather();
    case operator_class::scatter_add:
      return w.scatter_add();
    case operator_class::convolution:
      return w.convolution();
    case operator_class::argmax:
      return w.argmax();
    default:
      refuse_call("emit_cpp", *w.c.op);
    }
  }

private:
  writer& out;
  fusion::call_info const& c;
  std::string y, a, b, d; // names of the result and the operands

  call_writer(writer& out_, fusion::program const& p, fusion::stage const& s)
      : out(out_), c(p.calls[s.number]), y(buffer_name(p, s.out)), a(buffer_name(p, s.in[0])) {
    if (s.in[1] >= 0) b = buffer_name(p, s.in[1]);
    if (s.in[2] >= 0) d = buffer_name(p, s.in[2]);
  }

  /// Opens a loop over each dimension, `i0`, `i1`, ...
  void open(dims const& sizes) const {
    for (int k = 0; k < sizes.n; ++k)
      out.open("for (index_t i" + text(k) + " = 0; i" + text(k) + " < " + text(sizes[k]) + "; ++i" + text(k) + ") {");
  }
  void close(dims const& sizes) const {
    for (int k = 0; k < sizes.n; ++k) out.close();
  }
  /// Returns the element number at the loop indices, with the index of dimension `axis` replaced by `there`.
  static std::string at(dims const& sizes, index_t axis = -1, std::string const& there = "") {
    dims const strides = contiguous_strides(sizes);
    std::string s;
    for (int k = 0; k < sizes.n; ++k)
      if (sizes[k] != 1)
        s += (s.empty() ? "" : " + ") + (strides[k] == 1 ? "" : text(strides[k]) + " * ") +
             (k == axis ? there : "i" + text(k));
    return s.empty() ? "0" : s;
  }
  void product() const {
    int const rank = c.out.sizes.n;
    bool const ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
    index_t const m = c.out.sizes[rank - 2], n = c.out.sizes[rank - 1], k = c.in[0].sizes[rank - (ta ? 2 : 1)],
                  count = m * n > 0 ? numel(c.out.sizes).number() / (m * n) : 0;
    std::string const type = type_text(c.out.type);
    auto operand = [&](std::string const& name, index_t size) {
      return count > 1 ? name + " + " + text(size) + " * e" : name;
    };
    std::string const x = operand(a, m * k), w = operand(b, k * n), z = operand(y, m * n);
    if (count > 1) out.open("for (index_t e = 0; e < " + text(count) + "; ++e) {");
    if (is_floating(c.out.type) && m * k * n <= 1 << 18) {
      out.line("kernel::matmul_fixed<" + type + ", " + text(m) + ", " + text(k) + ", " + text(n) +
               (ta || tb ? std::string(", ") + (ta ? "true" : "false") + (tb ? ", true" : "") : "") + ">(" + x + ", " +
               w + ", " + z + ");");
    } else {
      auto matrix = [](std::string const& name, index_t row, index_t col) {
        return "{" + name + ", " + text(row) + ", " + text(col) + "}";
      };
      out.line("kernel::matmul<" + type + ">(" + text(m) + ", " + text(n) + ", " + text(k) + ", " +
               matrix(x, ta ? 1 : k, ta ? m : 1) + ", " + matrix(w, tb ? 1 : n, tb ? k : 1) + ", " + matrix(z, n, 1) +
               ");");
    }
    if (count > 1) out.close();
  }
  void convolution() const {
    auto list = [](dims const& d) {
      std::string s;
      for (index_t n : d) s += (s.empty() ? "" : ", ") + text(n);
      return "varve::dims{" + s + "}";
    };
    out.line(std::string("kernel::convolve<") + type_text(c.out.type) + ">({varve::attributes(" + list(c.at[0]) + ", " +
             list(c.at[1]) + ", " + list(c.at[2]) + "), " + list(c.in[0].sizes) + ", " + list(c.in[1].sizes) + ", " +
             list(c.out.sizes) + "}, " + a + ", " + b + ", " + y + ");");
  }
  void slice_backward() const {
    int const axis = static_cast<int>(c.at[1][0]);
    out.line("for (index_t e = 0; e < " + text(numel(c.out.sizes)) + "; ++e) " + y + "[e] = 0;");
    open(c.in[0].sizes);
    out.line(y + "[" +
             at(c.out.sizes, axis, "(" + text(c.at[1][1]) + " + " + text(c.at[1][3]) + " * i" + text(axis) + ")") +
             "] = " + a + "[" + at(c.in[0].sizes) + "];");
    close(c.in[0].sizes);
  }
  /// Opens a loop over the indices in `b`. Names the present index `there`, and checks that it is below `size`.
  void open_picked(dims const& sizes, index_t size) const {
    open(sizes.n ? sizes : dims{1});
    out.line("index_t const there = static_cast<index_t>(" + b + "[" + at(sizes) + "]);");
    out.line("if (there < 0 || there >= " + text(size) + ") throw std::out_of_range(\"" + c.op->name +
             ": an index is out of range for size " + text(size) + "\");");
  }
  void close_picked(dims const& sizes) const { close(sizes.n ? sizes : dims{1}); }
  void gather() const {
    dims const& x = c.in[0].sizes;
    open_picked(c.out.sizes, x.n ? x[static_cast<int>(c.at[0][0])] : extent(1));
    out.line(y + "[" + at(c.out.sizes) + "] = " + a + "[" + at(x, c.at[0][0], "there") + "];");
    close_picked(c.out.sizes);
  }
  void scatter_add() const {
    dims const& r = c.out.sizes;
    out.line("for (index_t e = 0; e < " + text(numel(r)) + "; ++e) " + y + "[e] = " + a + "[e];");
    open_picked(c.in[1].sizes, r.n ? r[static_cast<int>(c.at[0][0])] : extent(1));
    std::string const to = y + "[" + at(r, c.at[0][0], "there") + "]";
    out.line(to + " = kernel::add(" + to + ", " + d + "[" + at(c.in[2].sizes) + "]);");
    close_picked(c.in[1].sizes);
  }
  void argmax() const {
    dims const& s = c.in[0].sizes;
    int const axis = static_cast<int>(c.at[0][0]);
    dims others;
    for (int k = 0; k < s.n; ++k)
      if (k != axis) others.push_back(s[k]);
    std::string const i = "i" + text(axis);
    if (others.n == 0) out.open("{"); // the name `best` is local to this stage
    for (int k = 0; k < s.n; ++k)
      if (k != axis)
        out.open("for (index_t i" + text(k) + " = 0; i" + text(k) + " < " + text(s[k]) + "; ++i" + text(k) + ") {");
    std::string result; // the element number without the axis
    dims const strides = contiguous_strides(others);
    for (int k = 0, o = 0; k < s.n; ++k)
      if (k != axis)
        result += (result.empty() ? "" : " + ") + (strides[o] == 1 ? "" : text(strides[o]) + " * ") + "i" + text(k),
            ++o;
    out.line("index_t best = 0;");
    out.open("for (index_t " + i + " = 1; " + i + " < " + text(s[axis]) + "; ++" + i + ") {");
    std::string const here = a + "[" + at(s) + "]", greatest = a + "[" + at(s, axis, "best") + "]";
    out.line("if (" + here + " > " + greatest +
             (is_floating(c.in[0].type) ? " || (" + here + " != " + here + " && " + greatest + " == " + greatest + ")"
                                        : "") +
             ") best = " + i + ";"); // NaN counts as greatest
    out.close();
    out.line(y + "[" + (result.empty() ? "0" : result) + "] = best;");
    close(others.n ? others : dims{1});
  }
};

} // namespace varve::cpp

#pragma GCC diagnostic pop
