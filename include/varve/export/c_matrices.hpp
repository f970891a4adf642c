// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_loops.hpp>

namespace varve::c99 {

/// Writes the operators of matrices that estimators and controllers need, as calls of functions that the text contains
/// once: `linalg_cholesky`, `linalg_solve_triangular`, `linalg_solve` and `linalg_det`. They compute in the dtype of
/// the matrices, with partial pivoting where they eliminate. As in `kernel::matrices`, no factor of 0 is multiplied:
/// the infinities that divisions by 0 leave would become NaN.
class matrix_writer {
public:
  enum class kind : unsigned char { none, cholesky, triangular, solve, det };
  static kind kind_of(op_handle const& op) {
    if (!op.own) return kind::none;
    std::string_view const name = op.name;
    return name == "linalg_cholesky"           ? kind::cholesky
           : name == "linalg_solve_triangular" ? kind::triangular
           : name == "linalg_solve"            ? kind::solve
           : name == "linalg_det"              ? kind::det
                                               : kind::none;
  }
  /// Adds the temporaries of a stage to the program.
  VARVE_COLD static void add_temporaries(fusion::program& p, fusion::stage& s, size_arguments& sizes) {
    if (s.kind != fusion::stage_kind::call) return;
    fusion::call_info const& info = p.calls[s.number];
    kind const k = kind_of(*info.op);
    if (k != kind::solve && k != kind::det) return;
    dims const& a = info.in[0].sizes;
    s.in[2] = static_cast<int>(p.buffers.size());
    p.buffers.push_back({fusion::place::arena, info.out.type, 0, sizes.product(a[a.n - 1], a[a.n - 1]).bits, -1});
  }
  /// Writes a stage, which `kind_of` knows. Returns if a matrix is singular or not positive definite.
  VARVE_COLD static void write(writer& out, context& c, fusion::program const& p, fusion::stage const& s) {
    fusion::call_info const& info = p.calls[s.number];
    dims const &a = info.in[0].sizes, &b = info.in[1].sizes;
    kind const k = kind_of(*info.op);
    dtype const t = info.out.type;
    if (!is_floating(t)) refuse::dtype_is_not_supported("emit_c", name(t));
    bool const two = k == kind::solve || k == kind::triangular;
    extent const n = a[a.n - 1], m = two ? b[b.n - 1] : extent(0), count = c.sizes.count(a.sub(0, a.n - 2)),
                 square = c.sizes.product(n, n), right = c.sizes.product(n, m);
    if (c.sizes.count(info.out.sizes) == 0) return;
    auto at = [&](int buffer, extent size) {
      std::string const x = address(p, buffer);
      return count != 1 ? x + " + " + (size == 1 ? "" : c.sizes(size, true) + " * ") + "e" : x;
    };
    std::string list = c.sizes(n);
    if (two) list += ", " + c.sizes(m);
    list += ", " + at(s.in[0], square);
    if (two) list += ", " + at(s.in[1], right);
    list += ", " + at(s.out, k == kind::det ? extent(1) : two ? right : square);
    if (k == kind::solve || k == kind::det) list += ", " + address(p, s.in[2]);
    if (k == kind::triangular)
      list += std::string(info.at[0][0] != 0 ? ", 1" : ", 0") + (info.at[1][0] != 0 ? ", 1" : ", 0");
    if (count != 1) out.open("for (" + c.index + " e = 0; e < " + c.sizes(count) + "; ++e) {");
    std::string const call = function(c, k, t) + "(" + list + ")";
    bool const checked = k == kind::cholesky || (k == kind::solve && info.at[0][0] != 0);
    if (checked) out.line("if (" + call + ") return " + text(static_cast<int>(fault::matrix)) + ";");
    else out.line((k == kind::solve ? "(void)" : "") + call + ";");
    if (count != 1) out.close();
  }

private:
  /// Replaces `$I` by the type of indices.
  static std::string with_index(context const& c, std::string s) {
    for (std::size_t k = s.find("$I"); k != std::string::npos; k = s.find("$I", k)) s.replace(k, 2, c.index);
    return s;
  }
  static std::string function(context& c, kind k, dtype t) {
    auto write = [&](char const* name, char const* result, char const* parameters, char const* body) {
      return c.c.own(name, result, t, with_index(c, parameters), with_index(c, body));
    };
    switch (k) {
    case kind::cholesky:
      return write("cholesky", "int", "$I n, const $T *a, $T *l",
                   "for ($I j = 0; j < n; ++j) {\n"
                   "    for ($I i = 0; i < j; ++i) l[i * n + j] = 0;\n"
                   "    for ($I i = j; i < n; ++i) {\n"
                   "      $T sum = a[i * n + j];\n"
                   "      for ($I k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];\n"
                   "      if (i == j && !(sum > 0)) return 1;\n"
                   "      l[i * n + j] = i == j ? sqrt$F(sum) : sum / l[j * n + j];\n"
                   "    }\n"
                   "  }\n"
                   "  return 0;");
    case kind::triangular:
      return write("solve_triangular", "void", "$I n, $I m, const $T *a, const $T *b, $T *x, int upper, int unit",
                   "for ($I q = 0; q < n; ++q) {\n"
                   "    const $I i = upper ? n - 1 - q : q, from = upper ? i + 1 : 0, to = upper ? n : i;\n"
                   "    for ($I j = 0; j < m; ++j) {\n"
                   "      $T sum = b[i * m + j];\n"
                   "      for ($I k = from; k < to; ++k)\n"
                   "        if (a[i * n + k] != 0) sum -= a[i * n + k] * x[k * m + j];\n"
                   "      x[i * m + j] = unit ? sum : sum / a[i * n + i];\n"
                   "    }\n"
                   "  }");
    case kind::solve:
      return write("solve", "int", "$I n, $I m, const $T *a, const $T *b, $T *x, $T *u",
                   "int singular = 0;\n"
                   "  for ($I i = 0; i < n * n; ++i) u[i] = a[i];\n"
                   "  for ($I i = 0; i < n * m; ++i) x[i] = b[i];\n"
                   "  for ($I k = 0; k < n; ++k) {\n"
                   "    $I p = k;\n"
                   "    for ($I i = k + 1; i < n; ++i)\n"
                   "      if (fabs$F(u[i * n + k]) > fabs$F(u[p * n + k])) p = i;\n"
                   "    if (u[p * n + k] == 0) singular = 1;\n"
                   "    for ($I j = k; j < n && p != k; ++j) {\n"
                   "      const $T v = u[k * n + j];\n"
                   "      u[k * n + j] = u[p * n + j], u[p * n + j] = v;\n"
                   "    }\n"
                   "    for ($I j = 0; j < m && p != k; ++j) {\n"
                   "      const $T v = x[k * m + j];\n"
                   "      x[k * m + j] = x[p * m + j], x[p * m + j] = v;\n"
                   "    }\n"
                   "    for ($I i = k + 1; i < n; ++i) {\n"
                   "      const $T d = u[k * n + k], v = d == 0 ? u[i * n + k] : u[i * n + k] / d;\n"
                   "      for ($I j = k + 1; j < n && v != 0 && d != 0; ++j) u[i * n + j] -= v * u[k * n + j];\n"
                   "      for ($I j = 0; j < m && v != 0; ++j) x[i * m + j] -= v * x[k * m + j];\n"
                   "    }\n"
                   "  }\n"
                   "  for ($I i = n; i-- > 0;)\n"
                   "    for ($I j = 0; j < m; ++j) {\n"
                   "      $T sum = x[i * m + j];\n"
                   "      for ($I k = i + 1; k < n; ++k)\n"
                   "        if (u[i * n + k] != 0) sum -= u[i * n + k] * x[k * m + j];\n"
                   "      x[i * m + j] = sum / u[i * n + i];\n"
                   "    }\n"
                   "  return singular;");
    default:
      return write("det", "void", "$I n, const $T *a, $T *d, $T *u",
                   "$T product = 1;\n"
                   "  for ($I i = 0; i < n * n; ++i) u[i] = a[i];\n"
                   "  for ($I k = 0; k < n; ++k) {\n"
                   "    $I p = k;\n"
                   "    for ($I i = k + 1; i < n; ++i)\n"
                   "      if (fabs$F(u[i * n + k]) > fabs$F(u[p * n + k])) p = i;\n"
                   "    product *= p == k ? u[p * n + k] : -u[p * n + k];\n"
                   "    if (u[p * n + k] == 0) continue;\n"
                   "    for ($I j = k; j < n && p != k; ++j) {\n"
                   "      const $T v = u[k * n + j];\n"
                   "      u[k * n + j] = u[p * n + j], u[p * n + j] = v;\n"
                   "    }\n"
                   "    for ($I i = k + 1; i < n; ++i) {\n"
                   "      const $T v = u[i * n + k] / u[k * n + k];\n"
                   "      for ($I j = k + 1; j < n && v != 0; ++j) u[i * n + j] -= v * u[k * n + j];\n"
                   "    }\n"
                   "  }\n"
                   "  *d = product;");
    }
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
