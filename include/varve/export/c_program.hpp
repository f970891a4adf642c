// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_functions.hpp>

namespace varve {

/// Options of `emit_c`.
struct c_options {
  /// Bytes of arrays that may lie on the stack, in all functions together. If the program needs more, all its arrays
  /// lie in memory that the caller passes as the last argument, `work`.
  index_t max_stack = 4096;
  /// True if the program may compute what is equal in real arithmetic: see `varve::fast_math`. Products with 0 then
  /// vanish, as in programs that were written by hand.
  bool fast_math = false;
  /// Arrays of at most this number of elements become numbers, each with its own statement: programs of small matrices
  /// become straight-line code, without what is 0 or 1 if `fast_math` is set. 0: arrays stay arrays.
  index_t unroll = 0;
  /// Values of the last arguments of the graph, which become constants of the text: what
  /// `make_fx(f).with_captures(constants, x...)` collected. `first_constant`, if it is not negative, is the number of
  /// the argument with which they begin.
  boxed_args constants{};
  int first_constant = -1;
  /// True if the text contains the graph as a comment, and names values by its nodes.
  bool graph = false;
  /// Arguments for a self-test. The program `c_program::test` calls the function with them and compares the results
  /// with those of `interpret`, which it contains. They say what symbolic sizes are.
  boxed_args test{};
};

/// A program in C. `source` includes the header by the name of the function: `gate.h`.
struct c_program {
  std::string header, source;
  /// A program that exits with 0 if the function computes what it did in varve; empty without `c_options::test`.
  std::string test;
  /// The names of the arguments for symbolic sizes. They come before all others.
  std::vector<std::string> sizes{};
  /// Bytes that the argument `work` must have, aligned as by `malloc`. If 0, there is no such argument. If -1, the
  /// number depends on the sizes: the text has a function that computes it, `size_t gate_work(size_t n)`.
  index_t work = 0;
  /// Bytes of arrays and named values on the stack, in the functions that are active at a time. Loop indices, sizes and
  /// pointers, and what the compiler adds (saved registers, parts of expressions, calls of `math.h`) come on top.
  index_t stack = 0;
};

namespace c99 {

/// Writes the header and the source of one graph.
class file_writer {
public:
  VARVE_COLD static c_program write(graph const& g, std::string const& name, c_options const& how) {
    if (!can_be_function(name))
      refuse::argument_is_invalid(
          "emit_c", ("\"" + name + "\" cannot be the name of a function in C; choose another name").c_str());
    language words(name);
    size_arguments sizes(g, name, words);
    context shared{words, "int", how.graph, sizes};
    function_plans const plans(g, shared);
    extent const most = plans.arrays(0);
    bool const on_stack = most.is_number() && most <= how.max_stack;
    sizes.limit_work(most);
    function_writer functions(plans, shared, on_stack);
    function_text const f = functions.write(0, name);
    std::string const bytes = most.is_number() ? std::string() : sizes(most); // may need a function of `words`
    std::string const others = words.functions + functions.all.text;
    if (cpp::mentions(functions.all.text + words.functions + f.body, name))
      refuse::argument_is_invalid(
          "emit_c", ("the text gives the name " + name + " to something else; choose another name").c_str());
    c_program r;
    r.sizes = sizes.names;
    r.work = on_stack ? 0 : most.is_number() ? most.number() : -1;
    r.stack = f.variables * 8 + (on_stack ? most.number() : 0);
    file_writer const w{sizes.shown(g), name, sizes, bytes};
    r.header = w.header(f, r, plans.plan_of(0));
    r.source = w.source(f, others, how.graph);
    return r;
  }

private:
  graph const g;
  std::string const& name;
  size_arguments const& sizes;
  std::string const& work; // its bytes, if they depend on sizes

  file_writer(graph g_, std::string const& name_, size_arguments const& sizes_, std::string const& work_)
      : g(std::move(g_)), name(name_), sizes(sizes_), work(work_) {}
  std::string work_function() const { return "size_t " + name + "_work(" + sizes.list_of("size_t ", false) + ")"; }
  static std::string commented(std::string s) { // a name may end the comment
    for (std::size_t at = s.find("*/"); at != std::string::npos; at = s.find("*/", at)) s.insert(at + 1, " ");
    return s;
  }
  std::string upper(std::string const& end) const {
    std::string s = name + end;
    for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return s;
  }
  std::string header(function_text const& f, c_program const& r, fusion::program const& p) const {
    std::string parameters = f.parameters;
    constexpr std::string_view restrict = "*restrict "; // C++ has no such word, and a declaration needs none
    for (std::size_t at = parameters.find(restrict); at != std::string::npos; at = parameters.find(restrict, at))
      parameters.replace(at, restrict.size(), "*");
    for (std::string const& n : sizes.names)
      if (std::size_t const at = parameters.find("size_t " + n + "_given"); at != std::string::npos)
        parameters.erase(at + 7 + n.size(), 6);
    std::string s =
        "/* " + name + ".h: written by varve::emit_c. */\n#ifndef " + upper("_H") + "\n#define " + upper("_H") + "\n";
    if (cpp::mentions(parameters, "bool")) s += "#include <stdbool.h>\n";
    if (parameters.find("int") != std::string::npos) s += "#include <stdint.h>\n";
    if (!sizes.empty()) s += "#include <stddef.h>\n";
    if (r.work > 0)
      s += "\n/* Bytes of `work`, which must be aligned as by malloc. */\n#define " + upper("_WORK") + " " +
           text(r.work) + "\n";
    s += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n" +
         (work.empty() ? std::string()
                       : "/* Returns the bytes that `work` must have, aligned as by malloc; 0 if " + name +
                             " refuses the sizes. */\n" + work_function() + ";\n") +
         "/* " + commented(cpp::signature_text(g, p)) + ",\n   row-major; results may not overlap arguments. Returns 0";
    if (f.fails)
      s += ", or 1: an index is out of range, 2: a loop\n   takes more steps than its bound, 3: an integer is divided "
           "by "
           "0, 4: a matrix is singular or not\n   positive definite; results are then incomplete";
    if (std::string const needs = sizes.conditions(); !needs.empty())
      s += ".\n   Returns 5 and does nothing else unless " + needs;
    s += ".\n   Uses at most " + text(r.stack) +
         " bytes of stack for arrays and named values, beside indices, sizes and pointers. */\nint " + name + "(" +
         parameters + ");\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
    return s;
  }
  std::string source(function_text const& f, std::string const& others, bool with_graph) const {
    std::string code = others;
    if (!work.empty()) {
      cpp::writer head;
      head.indent();
      sizes.begin(work, 0, head);
      head.line("return (size_t)(" + work + ");");
      code += work_function() + " {\n" + head.text + "}\n";
    }
    code += "int " + name + "(" + f.parameters + ")" + f.body;
    std::string s = "/* " + name + ".c: written by varve::emit_c";
    if (with_graph) {
      graph numbered = g; // the names are printed at the function
      numbered.names = {};
      s += " from this graph, whose node numbers the names of values carry:\n\n" + commented(to_string(numbered));
    }
    s += ". */\n#include \"" + name + ".h\"\n";
    auto include = [&](std::initializer_list<char const*> used, char const* header) {
      for (char const* x : used)
        if (code.find(x) != std::string::npos) {
          s += std::string("#include <") + header + ">\n";
          return;
        }
    };
    s += "#include <math.h>\n";
    include({"bool ", "true", "false"}, "stdbool.h");
    include({"ptrdiff_t"}, "stddef.h");
    include({"int8_t", "int32_t", "int64_t", "INT32", "INT64", "UINT8", "PTRDIFF_MAX"}, "stdint.h");
    include({"memcpy"}, "string.h");
    return s + "\n" + code;
  }
};
} // namespace c99

} // namespace varve

#pragma GCC diagnostic pop
