// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/cpp_calls.hpp>
#include <varve/kernel/vector_loop.hpp> // what emitted code is written with
#include <varve/pass/inline_calls.hpp>
#include <varve/pass/optimize.hpp>
#include <varve/pass/written_conversions.hpp>
#include <varve/plan/planner.hpp>

/// @file
/// Graphs as C++ source, so that a program traced at run time can be compiled into a later build.
///
/// The text is the plan of a fused program: loops as `for` and `for_vectors`, names by node, and the graph as a
/// comment. It calls the functions of `varve/kernel` that the rules of the operators call. Operators that have none are
/// refused.
namespace varve {
namespace cpp {

/// Writes the functions of one graph. Those of higher-order operators come before their callers.
class file_writer {
public:
  /// Returns the whole header.
  VARVE_COLD static std::string write(graph const& g, std::string const& name) {
    file_writer w(g);
    w.function(0, "run", "");
    std::string s = "// " + name +
                    ": written by varve::emit_cpp from the graph below, whose node numbers the names in the code "
                    "carry. Change the graph, not this file.\n//\n";
    graph numbered = g; // the names are printed at `run`
    numbered.names = {};
    std::string const graph_text = to_string(numbered);
    for (std::size_t from = 0; from < graph_text.size();) {
      std::size_t const end = graph_text.find('\n', from);
      s += "//   " + graph_text.substr(from, end - from) + "\n";
      from = end + 1;
    }
    s += "#pragma once\n";
    auto include = [&](char const* used, char const* header) {
      if (w.all.text.find(used) != std::string::npos) s += std::string("#include <") + header + ">\n";
    };
    s += "#include <cstddef>\n#include <cstdint>\n";
    include("std::memcpy", "cstring");
    include("std::numeric_limits", "limits");
    include("std::make_unique", "memory");
    include(w.all.text.find("std::runtime_error") != std::string::npos ? "std::runtime_error" : "std::out_of_range",
            "stdexcept");
    include("std::swap", "utility");
    s += "#include <varve/core/dims.hpp>\n";
    include("kernel::cast", "varve/kernel/convert.hpp");
    include("kernel::", "varve/kernel/math.hpp");
    include("kernel::matmul<", "varve/kernel/matmul.hpp");
    include("kernel::matmul_fixed<", "varve/kernel/matmul_fixed.hpp");
    include("kernel::convolve<", "varve/kernel/convolution.hpp");
    include("batch<", "varve/kernel/vector_loop.hpp");
    include("varve::fusion::share", "varve/core/threads.hpp");
    include("varve::rules<", "varve/op/all.hpp");
    include("varve::rules<", "varve/special.hpp");
    s += "\nnamespace " + name + " {\nusing varve::index_t;\n";
    if (w.all.text.find("kernel::") != std::string::npos || w.all.text.find("batch<") != std::string::npos)
      s += "namespace kernel = varve::kernel;\n";
    if (w.all.text.find("batch<") != std::string::npos) s += "using kernel::batch;\n";
    return s + "\n" + w.all.text + "} // namespace " + name + "\n";
  }

private:
  graph const& g;
  writer all;

  explicit file_writer(graph const& g_) : g(g_) {}
  static constexpr index_t most_on_stack = 1 << 16; // bytes

  /// Returns the parameters of a function with this body; unused ones are marked.
  static std::string parameters(graph const& f, fusion::program const& p, std::string const& body) {
    std::string s;
    for (int k = 0; k < f.regions[0].inputs; ++k)
      s += (k ? ", " : "") + std::string(mentions(body, "x" + text(k)) ? "" : "[[maybe_unused]] ") +
           type_text(f.nodes[k].out.type) + " const* x" + text(k);
    for (std::size_t k = 0; k < p.results.size(); ++k)
      s += (s.empty() ? "" : ", ") + std::string(type_text(p.results[static_cast<std::ptrdiff_t>(k)].type)) +
           "* __restrict y" + std::to_string(k);
    return s;
  }
  /// Writes the constants that a body mentions.
  static void constants(fusion::program const& p, std::string const& body, writer& out) {
    for (std::size_t k = 0; k < p.buffers.size(); ++k) {
      fusion::buffer const& b = p.buffers[static_cast<std::ptrdiff_t>(k)];
      if (b.where != fusion::place::constant || b.elements == 0 || !mentions(body, buffer_name(p, static_cast<int>(k))))
        continue;
      std::string line = "alignas(64) static constexpr " + std::string(type_text(b.type)) + " " +
                         buffer_name(p, static_cast<int>(k)) + "[" + text(b.elements) + "] = {";
      for (index_t e = 0; e < b.elements; ++e) line += (e ? ", " : "") + literal(b.type, p.constants[b.number + e]);
      out.line(line + "};");
    }
  }
  static void workspace(fusion::program const& p, std::string const& body, writer& out) {
    bool const on_stack = p.workspace <= most_on_stack;
    bool opened = false;
    for (std::size_t k = 0; k < p.buffers.size(); ++k) {
      fusion::buffer const& b = p.buffers[static_cast<std::ptrdiff_t>(k)];
      if (b.where != fusion::place::arena || !mentions(body, buffer_name(p, static_cast<int>(k)))) continue;
      std::string const type = type_text(b.type),
                        bytes = text(p.workspace ? p.workspace : 1); // temporaries without elements have names too
      if (!opened)
        out.line(on_stack ? "alignas(64) std::byte workspace[" + bytes + "];"
                          : "auto const workspace = std::make_unique<std::byte[]>(" + bytes + ");");
      opened = true;
      out.line("auto* const " + buffer_name(p, static_cast<int>(k)) + " = reinterpret_cast<" + type + "*>(workspace" +
               (on_stack ? "" : ".get()") + " + " + text(b.number) + ");");
    }
    if (opened) out.line("");
  }
  /// Writes region `r`: first the functions that it calls, then its own.
  void function(int r, std::string const& name, std::string const& what) {
    graph const f = r ? function_of(g, r) : g;
    fusion::program p = fusion::plan(f);
    int const first = g.regions[r].node_first; // names use the node numbers of the whole graph
    for (fusion::buffer& b : p.buffers) b.node += b.node < 0 ? 0 : first;
    for (fusion::step& s : p.steps) s.node += first;
    writer body;
    body.indent();
    for (fusion::stage const& s : p.stages) {
      if (s.kind == fusion::stage_kind::loops) {
        fusion::body const& b = p.bodies[s.number];
        body.line(leaves(p, b));
        body.open("{");
        loop_writer::write(body, p, b);
        body.close();
      } else if (s.kind == fusion::stage_kind::fill) {
        fusion::buffer const& b = p.buffers[s.out];
        std::string const limits = "std::numeric_limits<" + std::string(type_text(b.type)) + ">::";
        std::string const x = s.value == 0          ? "0"
                              : is_floating(b.type) ? literal(b.type, s.value)
                                                    : limits + (s.value < 0 ? "lowest()" : "max()");
        body.line("for (index_t e = 0; e < " + text(b.elements) + "; ++e) " + buffer_name(p, s.out) + "[e] = " + x +
                  ";");
      } else if (s.kind == fusion::stage_kind::branch) {
        branch(p, s, name, body);
      } else if (s.kind == fusion::stage_kind::scan) {
        scan(p, s, name, body);
      } else {
        body.line("// %" + text(p.buffers[s.out].node));
        call_writer::write(body, p, s);
      }
    }
    body.close();
    body.line("");
    all.line("/// " + signature_text(f, p) + ", row-major; results may not overlap arguments.");
    all.line("inline void " + name + "(" + parameters(f, p, body.text) + ") {" + (what.empty() ? "" : " // " + what));
    writer names;
    names.indent();
    constants(p, body.text, names);
    workspace(p, body.text, names);
    all.text += names.text + body.text;
  }
  static std::string list_of(fusion::program const& p, int first, int count, std::string s = "") {
    for (int k = 0; k < count; ++k) s += (s.empty() ? "" : ", ") + buffer_name(p, p.ports[first + k]);
    return s;
  }
  void branch(fusion::program const& p, fusion::stage const& s, std::string const& name, writer& body) {
    fusion::call_info const& c = p.calls[s.number];
    std::string const then = name + "_then" + text(s.number), otherwise = name + "_else" + text(s.number);
    function(c.region, then, "where the predicate of a cond holds");
    function(c.region + 1, otherwise, "where it does not");
    std::string const arguments = list_of(p, s.in[2], c.results, list_of(p, s.in[1], c.operands));
    body.line("if (*" + buffer_name(p, s.in[0]) + ") " + then + "(" + arguments + ");");
    body.line("else " + otherwise + "(" + arguments + ");");
  }
  /// Writes a loop. Operands that it walks and outputs advance by one row a step; carried values alternate between two
  /// buffers. Outputs of steps that did not run are 0.
  void scan(fusion::program const& p, fusion::stage const& s, std::string const& name, writer& body) {
    fusion::call_info const& c = p.calls[s.number];
    int const carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]);
    bool const open = c.condition >= 0, counted = c.at[0][3] != 0;
    index_t const n = c.at[1][0];
    std::string const number = text(s.number), step = name + "_step" + number, goes_on = name + "_goes_on" + number;
    function(c.region, step, open ? "one step of a while_loop" : "one step of a scan");
    if (open) function(c.condition, goes_on, "does it go on?");
    auto buffer = [&](int slot) -> fusion::buffer const& { return p.buffers[p.ports[slot]]; };
    auto first = [&](int slot) { return buffer_name(p, p.ports[slot]); };
    auto row = [&](int slot) { return first(slot) + " + " + text(buffer(slot).elements / (n ? n : 1)) + " * row"; };
    auto bytes = [&](int slot) {
      return text(buffer(slot).elements) + " * sizeof(" + type_text(buffer(slot).type) + ")";
    };
    body.line(open      ? "// a while_loop"
              : counted ? "// a scan of as many steps as a value says"
                        : "// a scan of " + text(n) + " steps");
    body.open("{");
    std::string in, now;
    for (int k = 0; k < carried; ++k) {
      std::string here = first(s.in[2] + k), there = first(s.in[2] + c.results + k);
      if (n % 2 && !open && !counted) std::swap(here, there); // the last step writes to the result
      body.line(std::string(type_text(buffer(s.in[2] + k).type)) + " *here" + text(k) + " = " + here + ", *there" +
                text(k) + " = " + there + ";");
      body.line("std::memcpy(here" + text(k) + ", " + first(s.in[1] + k) + ", " + bytes(s.in[1] + k) + ");");
    }
    for (int k = 0; k < c.operands; ++k) {
      in += (k ? ", " : "") + (k < carried ? "here" + text(k) : k < walked ? row(s.in[1] + k) : first(s.in[1] + k));
      now += (k < carried ? "here" + text(k) : first(s.in[1] + k)) + ", ";
    }
    for (int k = 0; k < c.results; ++k)
      in += (in.empty() ? "" : ", ") + (k < carried ? "there" + text(k) : row(s.in[2] + k));
    std::string const steps = counted ? "static_cast<index_t>(*" + first(s.in[1] + walked) + ")" : text(n);
    body.line("index_t step = 0;");
    body.open(open ? "for (;; ++step) {" : "for (; step < " + steps + "; ++step) {");
    if (open) {
      std::string const go = buffer_name(p, s.in[0]);
      body.line(goes_on + "(" + now + go + ");");
      body.line("if (!*" + go + ") break;");
      if (n > 0)
        body.line("if (step == " + text(n) + ") throw std::runtime_error(\"" + name +
                  ": the while_loop takes more steps than its bound of " + text(n) + "\");");
    }
    if (in.find(" * row") != std::string::npos)
      body.line("index_t const row = " + (c.at[0][2] ? steps + " - 1 - step;" : std::string("step;")));
    body.line(step + "(" + in + ");");
    for (int k = 0; k < carried; ++k) body.line("std::swap(here" + text(k) + ", there" + text(k) + ");");
    body.close();
    for (int k = 0; k < c.results && (open || counted); ++k) {
      std::string const to = first(s.in[2] + k), total = text(buffer(s.in[2] + k).elements);
      if (k < carried)
        body.line("if (here" + text(k) + " != " + to + ") std::memcpy(" + to + ", here" + text(k) + ", " +
                  bytes(s.in[2] + k) + ");");
      else
        body.line("for (index_t e = " + text(buffer(s.in[2] + k).elements / (n ? n : 1)) + " * step; e < " + total +
                  "; ++e) " + to + "[e] = 0;");
    }
    body.close();
  }
};
} // namespace cpp

/// Returns a graph as a C++ header: `std::ofstream("gate.hpp") << emit_cpp(make_fx(f)(x), "gate");` writes the function
/// `gate::run(x0, ..., y0, ...)`. It is the program that `fuse` would make of the graph, as readable loops over SIMD
/// batches, with the graph as a comment.
///
/// The header needs only those kernels of varve that it calls (`varve/kernel`), no tensors and no dispatcher.
/// Temporaries lie on the stack, beyond 64 KiB on the heap. Results agree with those of `interpret`, except that sums
/// may be reordered and products in sums rounded once. Throws `value_error` for symbolic sizes, for graphs that write
/// into their arguments, and for operators that cannot be written as C++.
template <class G>
  requires std::is_same_v<G, graph>
std::string emit_cpp(G const& g, std::string const& name) {
  if (varve::detail::is_symbolic(g))
    refuse::argument_is_invalid("emit_cpp", "the graph has symbolic sizes; trace it with the sizes of the arguments");
  G const values = values_only(g);
  G const flat = inline_calls(values);
  G const pure = functionalize(flat, purpose::values);
  if (has_mutation(pure))
    refuse::argument_is_invalid("emit_cpp",
                                "the graph writes into its argument; write into a clone of it, and return that");
  G const typed = as_traced<>(pure);
  G const better = optimize(typed, purpose::values);
  return cpp::file_writer::write(better, name);
}
/// Returns a graph traced by the compiler as a C++ header.
template <graph_sizes S>
std::string emit_cpp(static_graph<S> const& g, std::string const& name) {
  return emit_cpp(g.thaw(), name);
}

} // namespace varve

#pragma GCC diagnostic pop
