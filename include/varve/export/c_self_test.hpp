// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/dispatch/boxed.hpp>
#include <varve/export/c_program.hpp>
#include <varve/op/create.hpp>
#include <varve/value/tensor.hpp>

namespace varve::c99 {

/// Returns the elements of a tensor as the initializer of an array in C.
template <class Boxed>
VARVE_COLD std::string elements_text(Boxed const& t) {
  std::string s;
  auto const values = t.is_contiguous() ? t : varve::detail::contiguous_copy(t);
  on_dtype(values.dtype(), "emit_c", [&]<class T>() {
    auto const* const x = static_cast<T const*>(values.raw());
    for (index_t k = 0; k < values.numel(); ++k) {
      if constexpr (std::is_same_v<T, std::int64_t>) { // a double does not represent every one
        bool const least = x[k] == INT64_MIN;
        s += (k ? ", " : "") + (least ? "INT64_MIN" : std::to_string(x[k]) + "LL");
      } else {
        s += (k ? ", " : "") + literal(values.dtype(), static_cast<double>(x[k])).text;
      }
    }
  });
  return s.empty() ? "0" : s;
}

/// Returns the numbers of symbolic sizes, in the order of their names, for arguments of a graph. Throws `value_error`
/// if no argument has such a size by itself.
template <class Boxed>
VARVE_COLD std::vector<index_t> sizes_in(graph const& g, Boxed const& arguments,
                                         std::vector<std::string> const& names) {
  std::vector<index_t> r(names.size(), -1);
  for (int k = 0; k < g.regions[0].inputs && k < arguments.size(); ++k)
    for (int d = 0; d < g.nodes[k].out.sizes.n; ++d)
      for (std::size_t s = 0; s < names.size(); ++s)
        if (extent const e = g.nodes[k].out.sizes[d]; e.is_entry() && g.expressions.view().text(e) == names[s])
          r[s] = arguments[static_cast<int>(g.nodes[k].value)].sizes()[d];
  for (std::size_t s = 0; s < names.size(); ++s)
    if (r[s] < 0)
      refuse::argument_is_invalid("emit_c", ("no argument of the self-test has the size " + names[s] +
                                             " by itself; leave c_options::test empty, and test it in C")
                                                .c_str());
  return r;
}

/// Returns the functions that the checks of a self-test call, whose names begin with `own`. Those of integers do not
/// convert to double, which does not represent every int64.
inline std::string comparisons(std::string const& checks, std::string const& own) {
  std::string s;
  if (checks.find(own + "differs(") != std::string::npos)
    s += "\nstatic int " + own +
         "differs(double y, double expected, double most, const char *name, long k) {\n"
         "  if (y == expected || (y != y && expected != expected)) return 0;\n"
         "  if (fabs(expected) < INFINITY && fabs(y - expected) <= most * (1 + fabs(expected))) return 0;\n"
         "  printf(\"%s[%ld] is %.17g, but was %.17g\\n\", name, k, y, expected);\n"
         "  return 1;\n}\n";
  if (checks.find(own + "differs_whole(") != std::string::npos)
    s += "\nstatic int " + own +
         "differs_whole(int64_t y, int64_t expected, const char *name, long k) {\n"
         "  if (y == expected) return 0;\n"
         "  printf(\"%s[%ld] is %lld, but was %lld\\n\", name, k, (long long)y, (long long)expected);\n"
         "  return 1;\n}\n";
  return s;
}
/// Refuses arguments of a self-test that have other dtypes than those of the graph, which the function in C has.
template <class Boxed>
VARVE_COLD void check_dtypes(graph const& g, Boxed const& arguments) {
  for (int k = 0; k < g.regions[0].inputs && k < arguments.size(); ++k) {
    dtype const t = g.nodes[k].out.type, given = arguments[static_cast<int>(g.nodes[k].value)].dtype();
    if (given != t)
      refuse::argument_is_invalid("emit_c", ("argument " + text(k) + " of the self-test is " + varve::name(given) +
                                             ", where the program takes " + varve::name(t) + "; convert it by vv::to")
                                                .c_str());
  }
}

/// Returns a program in C that calls the function `name` with arguments, and compares its results with others. Results
/// may differ by 1e-4 of their size in float32, and by 1e-10 in float64. Integers, infinities and NaN must be equal.
/// The names of the program begin with that of the function, which may be any.
template <class Boxed>
VARVE_COLD std::string self_test(Boxed const& arguments, Boxed const& results, std::string const& name,
                                 c_program const& program, std::vector<index_t> const& sizes) {
  index_t const work = program.work;
  std::string const own = name + "_", loop = "  for (" + own + "k = 0; " + own + "k < ", at = "[" + own + "k]";
  std::string data, list, checks;
  for (index_t const n : sizes) list += (list.empty() ? "" : ", ") + text(n);
  std::string const bytes = work < 0 ? name + "_work(" + list + ") + 1" : text(work);
  auto array = [&](char const* called, int k, auto const& t, bool filled) {
    data += std::string("static ") + (filled ? "const " : "") + type_text(t.dtype()) + " " + own + called + text(k) +
            "[" + text(t.numel() ? t.numel() : 1) + "]" + (filled ? " = {" + elements_text(t) + "}" : std::string()) +
            ";\n";
  };
  auto append = [&](std::string const& x) { list += (list.empty() ? "" : ", ") + own + x; };
  for (int k = 0; k < arguments.size(); ++k) array("in", k, arguments[k], true), append("in" + text(k));
  for (int k = 0; k < results.size(); ++k) {
    dtype const t = results[k].dtype();
    std::string const y = "out" + text(k), most = t == dtype::float32 ? "1e-4, " : "1e-10, ";
    array("out", k, results[k], false), array("expected", k, results[k], true), append(y);
    checks += loop + text(results[k].numel()) + "; ++" + own + "k)\n    " + own + "bad += " + own +
              (is_floating(t) ? "differs(" : "differs_whole(") + own + y + at + ", " + own + "expected" + text(k) + at +
              ", " + (is_floating(t) ? most : "") + "\"" + y + "\", " + own + "k);\n";
  }
  std::string const memory = own + "memory"; // name_work is a function
  if (work) append("memory");
  return "/* A test of " + name + ": recorded arguments and results. Written by varve::emit_c. */\n#include \"" + name +
         ".h\"\n#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n" +
         (work ? "#include <stdlib.h>\n" : "") + "\n" + data + comparisons(checks, own) + "\nint main(void) {\n  int " +
         own + "bad = 0;\n  long " + own + "k;\n" +
         (work ? "  void *const " + memory + " = malloc(" + bytes + ");\n  if (!" + memory + ") return 2;\n" : "") +
         "  if (" + name + "(" + list + ")) return 2;\n" + checks + (work ? "  free(" + memory + ");\n" : "") +
         "  return " + own + "bad != 0;\n}\n";
}

} // namespace varve::c99

#pragma GCC diagnostic pop
