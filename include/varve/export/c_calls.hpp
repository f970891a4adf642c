// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_matrices.hpp>
#include <varve/kernel/convolution_direct.hpp>

namespace varve::c99 {

/// Writes the stages of a program that are no loop nests: products of matrices, convolutions and operators that address
/// memory by values, as plain loops.
class call_writer {
public:
  /// Writes a `matmul` or `call` stage.
  VARVE_COLD static void write(writer& out, context& c, fusion::program const& p, fusion::stage const& s) {
    call_writer const w(out, c, p, s);
    switch (w.info.what) {
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
      return w.by_name();
    }
  }

private:
  writer& out;
  context& c;
  fusion::program const& p;
  fusion::stage const& s;
  fusion::call_info const& info;

  call_writer(writer& out_, context& c_, fusion::program const& p_, fusion::stage const& s_)
      : out(out_), c(c_), p(p_), s(s_), info(p_.calls[s_.number]) {}
  std::string result(std::string const& at) const { return element(p, s.out, at); }
  std::string size(extent n, bool factor = false) const { return c.sizes(n.bits, factor); }
  std::string in(int k, std::string const& at) const { return element(p, s.in[k], at); }
  std::string added(std::string const& x, std::string const& y) const {
    return c.c.arithmetic(operator_class::add, info.out.type, {x}, {y}).text;
  }
  std::string multiplied(std::string const& x, std::string const& y) const {
    return within(c.c.arithmetic(operator_class::mul, info.out.type, {x}, {y}), binding::product);
  }

  /// Writes an operator that the planner does not know.
  void by_name() const {
    std::string_view const name = info.op->own ? info.op->name : "";
    if (name == "recurrence") return recurrence();
    if (name == "as_strided") return region(false);
    if (name == "as_strided_backward") return region(true);
    if (matrix_writer::kind_of(*info.op) != matrix_writer::kind::none) return matrix_writer::write(out, c, p, s);
    cpp::refuse_call("emit_c", *info.op);
  }
  void open(std::string const& i, extent n) const {
    out.open("for (" + c.index + " " + i + " = 0; " + i + " < " + size(n) + "; ++" + i + ") {");
  }
  /// Opens a loop over each dimension, `i0`, `i1`, ...
  void open(dims const& sizes) const {
    for (int k = 0; k < sizes.n; ++k) open("i" + text(k), sizes[k]);
  }
  void close(int n) const {
    for (int k = 0; k < n; ++k) out.close();
  }
  /// Returns the sum of the terms that are not 0.
  std::string sum_of(std::vector<std::pair<extent, std::string>> const& terms, index_t offset = 0) const {
    std::string r;
    for (auto const& [times, i] : terms)
      if (times != 0 && i != "0") r += (r.empty() ? "" : " + ") + (times == 1 ? "" : size(times, true) + " * ") + i;
    if (offset != 0) r += r.empty() ? text(offset) : (offset < 0 ? " - " : " + ") + text(offset < 0 ? -offset : offset);
    return r.empty() ? "0" : r;
  }
  /// Returns the element number at the loop indices, with the index of dimension `axis` replaced by `there`.
  std::string at(dims const& sizes, index_t axis = -1, std::string const& there = "") const {
    dims const strides = c.sizes.strides(sizes);
    std::vector<std::pair<extent, std::string>> terms;
    for (int k = 0; k < sizes.n; ++k)
      if (sizes[k] != 1) terms.emplace_back(strides[k], k == axis ? there : "i" + text(k));
    return sum_of(terms);
  }
  /// Writes a product: rows of the result add up rows of the second operand, which a compiler vectorizes; if that
  /// operand is transposed, each element is a dot product.
  void product() const {
    int const rank = info.out.sizes.n;
    bool const ta = info.at[0][0] != 0, tb = info.at[0][1] != 0;
    extent const m = info.out.sizes[rank - 2], n = info.out.sizes[rank - 1], k = info.in[0].sizes[rank - (ta ? 2 : 1)],
                 count = c.sizes.count(info.out.sizes.sub(0, rank - 2)), mk = c.sizes.product(m, k),
                 kn = c.sizes.product(k, n), mn = c.sizes.product(m, n);
    if (count == 0 || mn == 0) return;
    auto one = [](extent size, std::string const& i) { return size == 1 ? std::string("0") : i; };
    std::string const e = one(count, "e"), i = one(m, "i"), j = one(n, "j"), q = one(k, "q");
    std::string const x = in(0, sum_of({{mk, e}, {ta ? extent(1) : k, i}, {ta ? m : extent(1), q}})),
                      w = in(1, sum_of({{kn, e}, {tb ? k : extent(1), j}, {tb ? extent(1) : n, q}})),
                      to = result(sum_of({{mn, e}, {n, i}, {1, j}}));
    std::string const type = type_text(info.out.type);
    int loops = 0;
    auto loop = [&](std::string const& name, extent size) {
      if (size != 1) open(name, size), ++loops;
    };
    loop("e", count), loop("i", m);
    if (tb || n == 1) {
      loop("j", n);
      if (loops == 0) out.open("{"), ++loops;
      out.line(type + " sum = 0;");
      if (k != 0 && k != 1) open("q", k);
      if (k != 0) out.line("sum = " + added("sum", multiplied(x, w)) + ";");
      if (k != 0 && k != 1) out.close();
      out.line(to + " = sum;");
      return close(loops);
    }
    open("j", n);
    out.line(to + " = 0;");
    out.close();
    if (k == 0) return close(loops);
    if (k != 1) open("q", k);
    else out.open("{");
    out.line("const " + type + " u = " + x + ";");
    open("j", n);
    out.line(to + " = " + added(to, multiplied("u", w)) + ";");
    close(loops + 2);
  }
  /// Writes a convolution: for each tap, the products of the places that it meets in the field.
  void convolution() const {
    dims input = info.in[0].sizes, output = info.out.sizes;
    extent const batch = input[0]; // the only size that may be symbolic
    input[0] = output[0] = 1;
    for (dims const& d : {input, info.in[1].sizes, output})
      if (!varve::detail::are_numbers(d))
        refuse::argument_is_invalid("emit_c", "operator convolution cannot be written with symbolic sizes, except for "
                                              "the number of samples where no weights are differentiated; trace "
                                              "the other sizes as numbers");
    kernel::convolution_sizes const z(info.at, input, info.in[1].sizes, output);
    index_t const m = z.place_channels, f = z.field_channels;
    out.line("for (" + c.index + " e = 0; e < " + size(c.sizes.count(info.out.sizes)) + "; ++e) " + result("e") +
             " = 0;");
    open("b", batch), open("g", z.groups), open("m", m), open("f", f);
    std::string place, field;
    int inner = 0, conditions = 0;
    std::vector<std::pair<extent, std::string>> places{
        {z.groups * m * z.places(), "b"}, {m * z.places(), "g"}, {z.places(), "m"}},
        fields{{z.groups * f * z.field_size(), "b"}, {f * z.field_size(), "g"}, {z.field_size(), "f"}},
        taps{{m * f * z.taps(), "g"}, {f * z.taps(), "m"}, {z.taps(), "f"}};
    index_t place_step = z.places(), field_step = z.field_size(), tap_step = z.taps();
    for (int d = 0; d < 3; ++d) { // loops over taps, then over places
      tap_step /= z.tap[d];
      if (z.tap[d] == 1) continue;
      open("k" + text(d), z.tap[d]), ++inner; // not t0, which is a temporary
      taps.emplace_back(tap_step, "k" + text(d));
    }
    for (int d = 0; d < 3; ++d) {
      place_step /= z.place[d], field_step /= z.field[d];
      std::string const n = text(d);
      if (z.place[d] != 1) {
        open("p" + n, z.place[d]), ++inner;
        places.emplace_back(place_step, "p" + n);
      }
      if (z.field[d] == 1 && z.padding[d] == 0) continue;
      out.line("const " + c.index + " x" + n + "_ = " +
               sum_of({{z.place[d] == 1 ? 0 : z.stride[d], "p" + n}, {z.tap[d] == 1 ? 0 : z.dilation[d], "k" + n}},
                      -z.padding[d]) +
               ";");
      if (z.padding[d] > 0 || (z.place[d] - 1) * z.stride[d] + (z.tap[d] - 1) * z.dilation[d] >= z.field[d])
        out.open("if (x" + n + "_ >= 0 && x" + n + "_ < " + text(z.field[d]) + ") {"), ++conditions;
      if (z.field[d] != 1) fields.emplace_back(field_step, "x" + n + "_");
    }
    std::string const there = sum_of(places), here = sum_of(fields), to = result(z.transposed ? here : there);
    out.line(to + " = " + added(to, multiplied(in(0, z.transposed ? there : here), in(1, sum_of(taps)))) + ";");
    close(4 + inner + conditions);
  }
  /// Writes y_k = a_k y_(k-1) + b_k along an axis, as running sums and products are.
  void recurrence() const {
    dims const& sizes = info.out.sizes;
    int const axis = static_cast<int>(info.at[0][0]);
    std::string const i = "i" + text(axis), n = size(sizes[axis]);
    bool const reverse = info.at[1][0] != 0;
    for (int k = 0; k < sizes.n; ++k)
      if (k != axis) open("i" + text(k), sizes[k]);
    if (sizes.n == 1) out.open("{");
    out.line(std::string(type_text(info.out.type)) + " last = 0;");
    if (reverse) out.open("for (" + c.index + " " + i + " = " + n + "; " + i + "-- > 0;) {");
    else open(i, sizes[axis]);
    std::string const first = reverse ? size(c.sizes.sum(sizes[axis], -1)) : "0", b = in(1, at(sizes));
    out.line("last = " + i + " == " + first + " ? " + b + " : " + added(multiplied(in(0, at(sizes)), "last"), b) + ";");
    out.line(result(at(sizes)) + " = last;");
    close(sizes.n + (sizes.n == 1));
  }
  /// Writes a strided region of a row-major array, or its transpose, which adds to zeros.
  void region(bool transposed) const {
    dims const& sizes = transposed ? info.in[0].sizes : info.out.sizes;
    std::vector<std::pair<extent, std::string>> terms;
    for (int k = 0; k < sizes.n; ++k)
      if (sizes[k] != 1) terms.emplace_back(info.at[1][k], "i" + text(k));
    extent const offset = info.at[2][0];
    if (!offset.is_number()) terms.emplace_back(offset, "1");
    std::string const there = sum_of(terms, offset.is_number() ? offset.number() : 0);
    if (transposed)
      out.line("for (" + c.index + " e = 0; e < " + size(c.sizes.count(info.out.sizes)) + "; ++e) " + result("e") +
               " = 0;");
    open(sizes);
    if (transposed) out.line(result(there) + " = " + added(result(there), in(0, at(sizes))) + ";");
    else out.line(result(at(sizes)) + " = " + in(0, there) + ";");
    close(sizes.n);
  }
  void slice_backward() const {
    int const axis = static_cast<int>(info.at[1][0]);
    out.line("for (" + c.index + " e = 0; e < " + size(c.sizes.count(info.out.sizes)) + "; ++e) " + result("e") +
             " = 0;");
    open(info.in[0].sizes);
    out.line(result(at(info.out.sizes, axis,
                       "(" + size(info.at[1][1]) + " + " + size(info.at[1][3], true) + " * i" + text(axis) + ")")) +
             " = " + in(0, at(info.in[0].sizes)) + ";");
    close(info.in[0].sizes.n);
  }
  /// Opens a loop over the indices. Names the present index `there`, and returns if it is not below `size`.
  void open_picked(dims const& sizes, extent limit) const {
    if (sizes.n) open(sizes);
    else out.open("{");
    out.line(std::string("const ") + type_text(info.in[1].type) + " there = " + in(1, at(sizes)) + ";");
    out.line("if (there < 0 || there >= " + size(limit) + ") return " + text(static_cast<int>(fault::index)) + ";");
  }
  void close_picked(dims const& sizes) const { close(sizes.n ? sizes.n : 1); }
  void gather() const {
    dims const& x = info.in[0].sizes;
    open_picked(info.out.sizes, x.n ? x[static_cast<int>(info.at[0][0])] : extent(1));
    out.line(result(at(info.out.sizes)) + " = " + in(0, at(x, info.at[0][0].number(), "there")) + ";");
    close_picked(info.out.sizes);
  }
  void scatter_add() const {
    dims const& r = info.out.sizes;
    out.line("for (" + c.index + " e = 0; e < " + size(c.sizes.count(r)) + "; ++e) " + result("e") + " = " +
             in(0, "e") + ";");
    if (c.sizes.count(info.in[1].sizes) == 0) return;
    open_picked(info.in[1].sizes, r.n ? r[static_cast<int>(info.at[0][0])] : extent(1));
    std::string const to = result(at(r, info.at[0][0].number(), "there"));
    out.line(to + " = " + added(to, in(2, at(info.in[2].sizes))) + ";");
    close_picked(info.in[1].sizes);
  }
  void argmax() const {
    dims const& sizes = info.in[0].sizes;
    int const axis = static_cast<int>(info.at[0][0]);
    dims others;
    std::vector<std::pair<extent, std::string>> to; // the element number without the axis
    for (int k = 0; k < sizes.n; ++k)
      if (k != axis) others.push_back(sizes[k]);
    dims const strides = c.sizes.strides(others);
    if (others.n == 0) out.open("{"); // the name `best` is local to this stage
    for (int k = 0, o = 0; k < sizes.n; ++k)
      if (k != axis) {
        open("i" + text(k), sizes[k]);
        to.emplace_back(sizes[k] == 1 ? extent(0) : strides[o], "i" + text(k));
        ++o;
      }
    std::string const i = "i" + text(axis), here = in(0, at(sizes)), greatest = in(0, at(sizes, axis, "best"));
    out.line(c.index + " best = 0;");
    if (sizes.n && sizes[axis] != 1) {
      out.open("for (" + c.index + " " + i + " = 1; " + i + " < " + size(sizes[axis]) + "; ++" + i + ") {");
      out.line("if (" + here + " > " + greatest +
               (is_floating(info.in[0].type)
                    ? " || (" + here + " != " + here + " && " + greatest + " == " + greatest + ")"
                    : "") +
               ") best = " + i + ";"); // NaN counts as greatest
      out.close();
    } else {
      out.line("(void)" + buffer_name(p, s.in[0]) + ";"); // the place is 0 whatever it contains
    }
    out.line(result(sum_of(to)) + " = best;");
    close(others.n ? others.n : 1);
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
