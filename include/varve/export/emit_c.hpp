// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_calls.hpp>
#include <varve/export/c_self_test.hpp>
#include <varve/export/element_graph.hpp>
#include <varve/fuse/fast_math.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/pass/inline_calls.hpp>
#include <varve/pass/prepare.hpp>
#include <varve/pass/written_conversions.hpp>
#include <varve/plan/planner.hpp>

/// @file
/// Graphs as C99 source for machines without varve: no library but `math.h`, no allocation, no state.
///
/// The text is the plan of a fused program, as that of `emit_cpp`, with plain loops in place of SIMD batches. A program
/// of numbers becomes straight-line code.
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
  /// with those of `interpret`, which it contains.
  boxed_args test{};
};

/// A program in C. `source` includes the header by the name of the function: `gate.h`.
struct c_program {
  std::string header, source;
  /// A program that exits with 0 if the function computes what it did in varve; empty without `c_options::test`.
  std::string test;
  /// Bytes that the argument `work` must have, aligned as by `malloc`. If 0, there is no such argument.
  index_t work = 0;
  /// Bytes of arrays and named variables on the stack, in the functions that are active at a time. What the compiler
  /// adds (saved registers, parts of expressions, calls of `math.h`) comes on top.
  index_t stack = 0;
};

namespace c99 {

/// Returns a graph in which inputs `first`, `first + 1`, ... are constants. Throws `value_error` for integers that a
/// double does not represent, and if there are fewer inputs.
template <class G, class Boxed>
VARVE_COLD G with_constants(G const& g, int first, Boxed const& values) {
  int const count = values.size(), inputs = g.regions[0].inputs;
  if (count == 0) return g;
  if (first < 0 || first + count > inputs)
    refuse::argument_is_invalid("emit_c", "there are more constants than arguments of the graph");
  G r = g;
  std::vector<int> now(static_cast<std::size_t>(inputs)); // constants come after the other inputs
  for (int k = 0; k < inputs; ++k) {
    bool const is_constant = k >= first && k < first + count;
    int const to = is_constant ? inputs - count + (k - first) : k < first ? k : k - count;
    now[static_cast<std::size_t>(k)] = to;
    node n = g.nodes[k];
    n.value = static_cast<double>(to);
    if (is_constant) {
      auto const& given = values[k - first];
      if (given.dtype() != n.out.type || !(given.sizes() == n.out.sizes))
        refuse::argument_is_invalid("emit_c", "a constant has another dtype or shape than the argument");
      auto const v = given.is_contiguous() ? given : varve::detail::contiguous_copy(given);
      n.op = &constant_handle, n.value = static_cast<double>(r.constants.size());
      on_dtype(n.out.type, "emit_c", [&]<class T>() {
        auto const* const x = static_cast<T const*>(v.raw());
        for (index_t e = 0; e < v.numel(); ++e) {
          auto const d = static_cast<double>(x[e]);
          if constexpr (std::is_integral_v<T>)
            if (kernel::cast<T>(d) != x[e])
              refuse::argument_is_invalid("emit_c", "a constant is an integer that a double does not represent");
          if (n.out.sizes.n == 0) n.value = d;
          else r.constants.push_back(d);
        }
      });
    }
    r.nodes[to] = n;
  }
  auto const moved = [&](int& n) {
    if (n < inputs) n = now[static_cast<std::size_t>(n)];
  };
  for (int& e : r.edges) moved(e);
  for (int& e : r.results) moved(e);
  r.regions[0].inputs -= count;
  if (first + count < inputs) r.names = {}; // they would be those of other inputs
  return r;
}

/// The place of each array of a function: temporaries of one dtype share an array where their lifetimes allow it.
struct layout {
  struct piece {
    dtype type;
    index_t begin, bytes; // in the memory of the function
    bool shared;          // smaller than its arrays together
  };
  std::vector<piece> pieces{};
  std::vector<index_t> at; // of a buffer: its first element in its piece; -1: it is no array
  index_t bytes = 0;

  VARVE_COLD explicit layout(loop::program const& p) : at(p.buffers.size(), -1) {
    for (dtype const t : {dtype::float64, dtype::int64, dtype::float32, dtype::int32, dtype::uint8, dtype::bool_}) {
      loop::program own = p;
      index_t separate = 0;
      bool any = false;
      for (loop::buffer& b : own.buffers) {
        if (b.where != loop::place::arena) continue;
        if (b.type == t && b.elements != 1) any = true, separate += b.elements * itemsize(t);
        else b.where = loop::place::scratch;
      }
      if (!any) continue;
      loop::place_in_arena(own);
      index_t const size = std::max<index_t>(own.workspace, itemsize(t)); // names without elements need memory too
      for (std::size_t k = 0; k < at.size(); ++k)
        if (loop::buffer const& b = own.buffers[k]; b.where == loop::place::arena) at[k] = b.number / itemsize(t);
      pieces.push_back({t, bytes, size, own.workspace < separate});
      bytes += (size + 15) / 16 * 16;
    }
  }
};

/// Writes the functions of one graph. Those of higher-order operators come before their callers.
class file_writer {
public:
  VARVE_COLD static c_program write(graph const& g, std::string const& name, c_options const& how) {
    check_name(name);
    file_writer w(g, name, how);
    w.plan(0);
    index_t const most = w.arrays(0);
    w.on_stack = most <= how.max_stack;
    function_text const f = w.function(0, name);
    if (cpp::mentions(w.all.text + w.words.functions + f.body, name))
      refuse::argument_is_invalid("emit_c",
                                  ("the text calls another function " + name + "; choose another name").c_str());
    c_program r;
    r.work = w.on_stack ? 0 : most;
    r.stack = f.variables * 8 + (w.on_stack ? most : 0);
    r.header = w.header(f, r);
    r.source = w.source(f);
    return r;
  }

private:
  struct function_text {
    std::string parameters, body;
    int variables = 0; // also of the functions that it calls
    bool fails = false;
  };
  graph const& g;
  std::string name;
  c_options const& how;
  writer all{};
  language words;
  context shared;
  bool on_stack = true;
  std::vector<loop::program> plans{};
  std::vector<char> planned{};
  std::vector<layout> layouts{};

  file_writer(graph const& g_, std::string const& name_, c_options const& how_)
      : g(g_), name(name_), how(how_), words(name_), shared{words, "int", how_.graph}, plans(g_.regions.size()),
        planned(g_.regions.size(), 0) {
    layouts.assign(g.regions.size(), layout(loop::program{}));
  }

  static void check_name(std::string const& name) {
    bool is_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
    for (char const c : name) is_name = is_name && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
    for (char const* word :
         {"auto",   "break",    "case",    "char",  "const",    "continue", "default",  "do",     "double",
          "else",   "enum",     "extern",  "float", "for",      "goto",     "if",       "inline", "int",
          "long",   "register", "return",  "short", "restrict", "signed",   "sizeof",   "static", "struct",
          "switch", "union",    "typedef", "void",  "while",    "volatile", "unsigned", "bool",   "main"})
      is_name = is_name && name != word;
    if (!is_name)
      refuse::argument_is_invalid("emit_c", ("\"" + name + "\" cannot be the name of a function in C").c_str());
  }
  graph region_graph(int r) const { return r ? function_of(g, r) : g; }
  /// Plans region `r` and those that it calls.
  void plan(int r) {
    auto const k = static_cast<std::size_t>(r);
    if (planned[k]) return;
    planned[k] = 1;
    loop::program p = loop::plan(region_graph(r));
    drop_unread(p);
    for (loop::stage& s : p.stages) matrix_writer::add_temporaries(p, s);
    int const first = g.regions[r].node_first; // names use the node numbers of the whole graph
    for (loop::buffer& b : p.buffers) {
      b.node += b.node < 0 ? 0 : first;
      type_text(b.type); // refuses dtypes that C lacks
      if (b.elements > INT16_MAX) shared.index = "ptrdiff_t";
    }
    for (loop::step& s : p.steps) s.node += first;
    for (loop::body const& b : p.bodies)
      for (int l = 0; l < b.rank; ++l)
        if (b.extent[l] > INT16_MAX) shared.index = "ptrdiff_t";
    layouts[k] = layout(p);
    for (loop::stage const& s : p.stages)
      for (int const q : callees(p, s)) plan(q);
    plans[k] = std::move(p);
  }
  /// Removes results that are temporaries which no text reads, because compilers warn of them. The planner keeps them
  /// if a step reads them, even if nothing uses the step.
  void drop_unread(loop::program& p) {
    auto const at = [](int k) { return static_cast<std::size_t>(k); };
    for (bool again = true; again;) {
      std::vector<char> read(p.buffers.size(), 0);
      auto mark = [&](int k) {
        if (k >= 0) read[at(k)] = 1;
      };
      for (loop::stage const& s : p.stages) {
        if (s.kind == loop::stage_kind::loops) {
          loop_writer::mark_reads(shared, p, p.bodies[s.number], read);
        } else if (s.kind == loop::stage_kind::branch || s.kind == loop::stage_kind::scan) {
          loop::call_info const& c = p.calls[s.number];
          int const carried = s.kind == loop::stage_kind::scan ? static_cast<int>(c.at[0][0]) : 0;
          mark(s.in[0]);
          for (int k = 0; k < c.operands; ++k) mark(p.ports[s.in[1] + k]);
          for (int k = 0; k < c.results + carried; ++k) mark(p.ports[s.in[2] + k]);
        } else {
          for (int k : s.in) mark(k);
        }
      }
      auto const is_needed = [&](int k) { return p.buffers[k].where != loop::place::arena || read[at(k)]; };
      list<loop::stage> kept;
      again = false;
      for (loop::stage const& s : p.stages) {
        bool needed = s.kind == loop::stage_kind::branch || s.kind == loop::stage_kind::scan;
        if (s.kind == loop::stage_kind::loops) {
          loop::body& b = p.bodies[s.number];
          int count = 0;
          for (int k = 0; k < b.sink_count; ++k)
            if (loop::sink const sink = p.sinks[b.sink_first + k]; is_needed(p.accesses[sink.access].buffer))
              p.sinks[b.sink_first + count++] = sink;
          again = again || (count > 0 && count != b.sink_count);
          needed = count > 0, b.sink_count = count;
        } else if (!needed) {
          needed = is_needed(s.out);
        }
        if (needed) kept.push_back(s);
      }
      again = again || kept.size() != p.stages.size();
      p.stages = kept;
    }
  }
  static std::vector<int> callees(loop::program const& p, loop::stage const& s) {
    if (s.kind != loop::stage_kind::branch && s.kind != loop::stage_kind::scan) return {};
    loop::call_info const& c = p.calls[s.number];
    if (s.kind == loop::stage_kind::branch) return {c.region, c.region + 1};
    return c.condition >= 0 ? std::vector<int>{c.region, c.condition} : std::vector<int>{c.region};
  }
  loop::program const& plan_of(int r) const { return plans[static_cast<std::size_t>(r)]; }
  layout const& layout_of(int r) const { return layouts[static_cast<std::size_t>(r)]; }
  /// Returns the bytes of the arrays of region `r` and of the functions that are active at a time below it.
  index_t arrays(int r) const {
    index_t below = 0;
    for (loop::stage const& s : plan_of(r).stages)
      for (int const q : callees(plan_of(r), s)) below = (std::max)(below, arrays(q));
    return layout_of(r).bytes + below;
  }
  bool has_work(int r) const { return !on_stack && arrays(r) > 0; }

  // ---- a function
  static void append(std::string& list, std::string const& x) { list += (list.empty() ? "" : ", ") + x; }
  std::string parameters(graph const& f, int r) const {
    loop::program const& p = plan_of(r);
    std::string s;
    for (int k = 0; k < f.regions[0].inputs; ++k)
      append(s, "const " + std::string(type_text(f.nodes[k].out.type)) + " *x" + text(k));
    for (std::size_t k = 0; k < p.results.size(); ++k)
      append(s, std::string(type_text(p.results[static_cast<std::ptrdiff_t>(k)].type)) + " *restrict y" +
                    std::to_string(k));
    if (has_work(r)) append(s, "void *work");
    return s.empty() ? "void" : s;
  }
  /// Writes the constants, temporaries and unused parameters of a function with this body.
  void names(graph const& f, int r, std::string const& body, writer& out) const {
    loop::program const& p = plan_of(r);
    for (std::size_t k = 0; k < p.buffers.size(); ++k) {
      loop::buffer const& b = p.buffers[static_cast<std::ptrdiff_t>(k)];
      std::string const n = buffer_name(p, static_cast<int>(k));
      if (b.where != loop::place::constant || b.elements == 0 || !cpp::mentions(body, n)) continue;
      std::string line = "static const " + std::string(type_text(b.type)) + " " + n + "[" + text(b.elements) + "] = {";
      for (index_t e = 0; e < b.elements; ++e)
        line += (e ? ", " : "") + literal(b.type, p.constants[b.number + e]).text;
      out.line(line + "};");
    }
    for (dtype const t : {dtype::float64, dtype::int64, dtype::float32, dtype::int32, dtype::uint8, dtype::bool_}) {
      std::string line;
      for (std::size_t k = 0; k < p.buffers.size(); ++k)
        if (loop::buffer const& b = p.buffers[static_cast<std::ptrdiff_t>(k)];
            is_local(p, static_cast<int>(k)) && b.type == t)
          if (std::string const n = buffer_name(p, static_cast<int>(k)); cpp::mentions(body, n)) append(line, n);
      if (!line.empty()) out.line(std::string(type_text(t)) + " " + line + ";");
    }
    arrays_of(r, body, out);
    for (int k = 0; k < f.regions[0].inputs; ++k)
      if (!cpp::mentions(body, "x" + text(k))) out.line("(void)x" + text(k) + ";");
    for (std::size_t k = 0; k < p.results.size(); ++k)
      if (!cpp::mentions(body, "y" + std::to_string(k))) out.line("(void)y" + std::to_string(k) + ";");
    if (has_work(r) && !cpp::mentions(body + out.text, "work")) out.line("(void)work;");
  }
  void arrays_of(int r, std::string const& body, writer& out) const {
    loop::program const& p = plan_of(r);
    layout const& l = layout_of(r);
    for (layout::piece const& piece : l.pieces) {
      std::string const type = type_text(piece.type), base = std::string("w_") + ending(piece.type);
      bool opened = false;
      for (std::size_t k = 0; k < l.at.size(); ++k) {
        loop::buffer const& b = p.buffers[static_cast<std::ptrdiff_t>(k)];
        std::string const n = buffer_name(p, static_cast<int>(k));
        if (l.at[k] < 0 || b.type != piece.type || !cpp::mentions(body, n)) continue;
        if (on_stack && !piece.shared) {
          out.line(type + " " + n + "[" + text(b.elements ? b.elements : 1) + "];");
          continue;
        }
        if (on_stack && !opened) out.line(type + " " + base + "[" + text(piece.bytes / itemsize(piece.type)) + "];");
        opened = true;
        std::string const from = l.at[k] ? " + " + text(l.at[k]) : "";
        if (on_stack) out.line(type + " *const " + n + " = " + base + from + ";");
        else if (piece.begin == 0) out.line(type + " *const " + n + " = (" + type + " *)work" + from + ";");
        else
          out.line(type + " *const " + n + " = (" + type + " *)((char *)work + " + text(piece.begin) + ")" + from +
                   ";");
      }
    }
  }
  /// Writes region `r` as the function `called`: first the functions that it calls, then its own.
  function_text function(int r, std::string const& called, std::string const& what = "") {
    graph const f = region_graph(r);
    loop::program const& p = plan_of(r);
    function_text own;
    writer body, head;
    body.indent(), head.indent();
    int most = 0, calls = 0;
    for (loop::stage const& s : p.stages) stage(r, s, called, body, own, most, calls, p.stages.size() == 1);
    for (std::size_t k = 0; k < p.buffers.size(); ++k)
      own.variables +=
          is_local(p, static_cast<int>(k)) && cpp::mentions(body.text, buffer_name(p, static_cast<int>(k)));
    own.variables += most + calls;
    own.parameters = parameters(f, r);
    bool const divides = cpp::mentions(body.text, "status");
    own.fails = own.fails || divides || cpp::mentions(body.text, "return");
    names(f, r, body.text, head);
    if (divides) head.line("int status = 0;");
    if (divides) body.line("return status;");
    else if (own.fails || r == 0) body.line("return 0;");
    own.body = " {\n" + head.text + body.text + "}\n";
    if (r == 0) return own;
    if (!what.empty()) all.line("/* " + what + " */");
    all.text +=
        std::string("static ") + (own.fails ? "int " : "void ") + called + "(" + own.parameters + ")" + own.body;
    return own;
  }
  /// True if a line of the first depth declares a variable.
  static bool declares(std::string const& text) {
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      std::string const line = text.substr(at, 40);
      if (line.substr(0, 8) == "  const ") return true;
      for (char const* type : {"bool", "uint8_t", "int32_t", "int64_t", "float", "double"})
        if (line.rfind("  " + std::string(type) + " r", 0) == 0) return true;
    }
    return false;
  }
  /// Writes one stage. `most` becomes the number of variables that a stage has at a time, `calls` that of the functions
  /// below.
  void stage(int r, loop::stage const& s, std::string const& called, writer& body, function_text& own, int& most,
             int& calls, bool alone) {
    loop::program const& p = plan_of(r);
    if (s.kind == loop::stage_kind::loops) {
      loop::body const& b = p.bodies[s.number];
      if (how.graph) body.line(cpp::leaves(p, b));
      writer nest;
      nest.indent();
      most = (std::max)(most, loop_writer::write(nest, shared, p, b));
      if (alone || !declares(nest.text)) {
        body.text += nest.text;
      } else { // its names are its own
        body.open("{");
        loop_writer::write(body, shared, p, b);
        body.close();
      }
    } else if (s.kind == loop::stage_kind::fill) {
      loop::buffer const& b = p.buffers[s.out];
      std::string const x =
          s.value == 0 ? literal(b.type, 0).text
                       : neutral(s.value < 0 ? loop::sink_kind::greatest : loop::sink_kind::least, b.type).text;
      if (is_local(p, s.out)) body.line(buffer_name(p, s.out) + " = " + x + ";");
      else
        body.line("for (" + shared.index + " e = 0; e < " + text(b.elements) + "; ++e) " + buffer_name(p, s.out) +
                  "[e] = " + x + ";");
    } else if (s.kind == loop::stage_kind::branch) {
      branch(r, s, called, body, own, calls);
    } else if (s.kind == loop::stage_kind::scan) {
      scan(r, s, called, body, own, most, calls);
    } else {
      if (how.graph) body.line("// %" + text(p.buffers[s.out].node));
      call_writer::write(body, shared, p, s);
      most = (std::max)(most, 8); // its indices
    }
  }
  /// Writes the call of a function, and the return of its fault.
  void call(int r, int callee, function_text const& f, std::string const& called, std::string arguments,
            writer& body) const {
    if (has_work(callee)) append(arguments, layout_of(r).bytes ? "(char *)work + " + text(layout_of(r).bytes) : "work");
    std::string const text = called + "(" + arguments + ")";
    if (!f.fails) return body.line(text + ";");
    body.open("{");
    body.line("const int fault = " + text + ";");
    body.line("if (fault) return fault;");
    body.close();
  }
  static std::string list_of(loop::program const& p, int first, int count, std::string s = "") {
    for (int k = 0; k < count; ++k) append(s, address(p, p.ports[first + k]));
    return s;
  }
  void branch(int r, loop::stage const& s, std::string const& called, writer& body, function_text& own, int& calls) {
    loop::program const& p = plan_of(r);
    loop::call_info const& c = p.calls[s.number];
    std::string const then = called + "_then" + text(s.number), otherwise = called + "_else" + text(s.number);
    function_text const f = function(c.region, then, "where the predicate of a cond holds"),
                        h = function(c.region + 1, otherwise, "where it does not");
    std::string const arguments = list_of(p, s.in[2], c.results, list_of(p, s.in[1], c.operands));
    body.open("if (" + element(p, s.in[0], "0") + ") {");
    call(r, c.region, f, then, arguments, body);
    body.close("} else {");
    body.indent();
    call(r, c.region + 1, h, otherwise, arguments, body);
    body.close();
    own.fails = own.fails || f.fails || h.fails;
    calls = (std::max)({calls, f.variables, h.variables});
  }
  /// Writes a loop. Operands that it walks and outputs advance by one row a step; carried values alternate between two
  /// buffers. Outputs of steps that did not run are 0.
  void scan(int r, loop::stage const& s, std::string const& called, writer& body, function_text& own, int& most,
            int& calls) {
    loop::program const& p = plan_of(r);
    loop::call_info const& c = p.calls[s.number];
    int const carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]);
    bool const open = c.condition >= 0, counted = c.at[0][3] != 0;
    index_t const n = c.at[1][0];
    std::string const number = text(s.number), step = called + "_step" + number, goes_on = called + "_goes_on" + number;
    function_text const f = function(c.region, step, open ? "one step of a while_loop" : "one step of a scan");
    function_text const test = open ? function(c.condition, goes_on, "true if it goes on") : function_text{};
    auto buffer = [&](int slot) -> loop::buffer const& { return p.buffers[p.ports[slot]]; };
    auto first = [&](int slot) { return address(p, p.ports[slot]); };
    auto row = [&](int slot) {
      index_t const size = buffer(slot).elements / (n ? n : 1);
      if (n == 1 || size == 0) return first(slot);
      return first(slot) + " + " + (size == 1 ? "" : text(size) + " * ") + "row";
    };
    auto only = [&](int slot) { return element(p, p.ports[slot], "0"); }; // of a buffer with one element
    auto copy = [&](std::string const& to, std::string const& from, int slot) {
      return "memcpy(" + to + ", " + from + ", " + text(buffer(slot).elements) + " * sizeof(*" + to + "));";
    };
    body.open("{");
    std::string in, now;
    for (int k = 0; k < carried; ++k) {
      std::string here = first(s.in[2] + k), there = first(s.in[2] + c.results + k), own_name = "here" + text(k);
      if (n % 2 && !open && !counted) std::swap(here, there); // the last step writes to the result
      body.line(std::string(type_text(buffer(s.in[2] + k).type)) + " *" + own_name + " = " + here + ", *there" +
                text(k) + " = " + there + ", *swap" + text(k) + ";");
      body.line(buffer(s.in[1] + k).elements == 1 ? "*" + own_name + " = " + only(s.in[1] + k) + ";"
                                                  : copy(own_name, first(s.in[1] + k), s.in[1] + k));
    }
    for (int k = 0; k < c.operands; ++k) {
      append(in, k < carried ? "here" + text(k) : k < walked ? row(s.in[1] + k) : first(s.in[1] + k));
      append(now, k < carried ? "here" + text(k) : first(s.in[1] + k));
    }
    for (int k = 0; k < c.results; ++k) append(in, k < carried ? "there" + text(k) : row(s.in[2] + k));
    std::string const steps = counted ? "(" + shared.index + ")" + element(p, p.ports[s.in[1] + walked], "0") : text(n);
    bool const is_counted = !open || n > 0 || c.results > carried || cpp::mentions(in, "row");
    if (is_counted) body.line(shared.index + " step = 0;");
    body.open(open ? (is_counted ? "for (;; ++step) {" : "for (;;) {") : "for (; step < " + steps + "; ++step) {");
    if (open) {
      append(now, address(p, s.in[0]));
      call(r, c.condition, test, goes_on, now, body);
      body.line("if (!" + element(p, s.in[0], "0") + ") break;");
      if (n > 0) body.line("if (step == " + text(n) + ") return " + text(static_cast<int>(fault::steps)) + ";");
    }
    if (cpp::mentions(in, "row"))
      body.line("const " + shared.index + " row = " + (c.at[0][2] ? steps + " - 1 - step;" : std::string("step;")));
    call(r, c.region, f, step, in, body);
    for (int k = 0; k < carried; ++k) {
      std::string const q = text(k);
      body.line("swap" + q + " = here" + q + ", here" + q + " = there" + q + ", there" + q + " = swap" + q + ";");
    }
    body.close();
    for (int k = 0; k < c.results && (open || counted); ++k) {
      std::string const to = first(s.in[2] + k), total = text(buffer(s.in[2] + k).elements);
      if (k < carried)
        body.line("if (here" + text(k) + " != " + to + ") " +
                  (buffer(s.in[2] + k).elements == 1 ? only(s.in[2] + k) + " = *here" + text(k) + ";"
                                                     : copy(to, "here" + text(k), s.in[2] + k)));
      else
        body.line("for (" + shared.index + " e = " + text(buffer(s.in[2] + k).elements / (n ? n : 1)) +
                  " * step; e < " + total + "; ++e) " + element(p, p.ports[s.in[2] + k], "e") + " = 0;");
    }
    body.close();
    own.fails = own.fails || f.fails || test.fails;
    most = (std::max)(most, 3 * carried + 2);
    calls = (std::max)({calls, f.variables, test.variables});
  }

  // ---- the files
  static std::string commented(std::string s) { // a name may end the comment
    for (std::size_t at = s.find("*/"); at != std::string::npos; at = s.find("*/", at)) s.insert(at + 1, " ");
    return s;
  }
  std::string upper(std::string const& end) const {
    std::string s = name + end;
    for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return s;
  }
  std::string header(function_text const& f, c_program const& r) const {
    std::string parameters = f.parameters;
    constexpr std::string_view restrict = "*restrict "; // C++ has no such word, and a declaration needs none
    for (std::size_t at = parameters.find(restrict); at != std::string::npos; at = parameters.find(restrict, at))
      parameters.replace(at, restrict.size(), "*");
    std::string s =
        "/* " + name + ".h: written by varve::emit_c. */\n#ifndef " + upper("_H") + "\n#define " + upper("_H") + "\n";
    if (cpp::mentions(parameters, "bool")) s += "#include <stdbool.h>\n";
    if (parameters.find("int") != std::string::npos) s += "#include <stdint.h>\n";
    if (r.work)
      s += "\n/* Bytes of `work`, which must be aligned as by malloc. */\n#define " + upper("_WORK") + " " +
           text(r.work) + "\n";
    s += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n/* " + commented(cpp::signature_text(g, plan_of(0))) +
         ",\n   row-major; results may not overlap arguments. Returns 0";
    if (f.fails)
      s += ", or 1: an index is out of range, 2: a loop\n   takes more steps than its bound, 3: an integer is divided "
           "by "
           "0, 4: a matrix is singular or not\n   positive definite; results are then incomplete";
    s += ".\n   Uses at most " + text(r.stack) + " bytes of stack for arrays and named variables. */\nint " + name +
         "(" + parameters + ");\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
    return s;
  }
  std::string source(function_text const& f) const {
    std::string const code = words.functions + all.text + "int " + name + "(" + f.parameters + ")" + f.body;
    std::string s = "/* " + name + ".c: written by varve::emit_c";
    if (how.graph) {
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
    include({"int8_t", "int32_t", "int64_t", "INT32", "INT64", "UINT8"}, "stdint.h");
    include({"memcpy"}, "string.h");
    return s + "\n" + code;
  }
};
} // namespace c99

/// Returns a graph as C99: `c_program const c = emit_c(make_fx(f)(x), "gate");` writes the function `int gate(const
/// float *x0, ..., float *y0, ...)`. It is the program that `fuse` would make of the graph, as plain loops.
///
/// The text needs nothing but `math.h`. It allocates nothing, has no state, and compiles as C99 with `-Wall -Wextra
/// -pedantic`. Values are computed in their own dtype. Results agree with those of `interpret` up to rounding, since
/// sums may be reordered; compile with `-ffp-contract=off` to exclude the compiler's own contractions.
///
/// Throws `value_error` for symbolic sizes, for graphs that write into their arguments, for operators that cannot be
/// written as C, and for names that C cannot have; `dtype_error` for dtypes other than bool, uint8, int32, int64,
/// float32 and float64. An operator of another program needs `rules<>::c99`.
template <class G>
  requires std::is_same_v<G, graph>
c_program emit_c(G const& g, std::string const& name, c_options const& how = {}) {
  if (varve::detail::is_symbolic(g))
    refuse::argument_is_invalid("emit_c", "the graph has symbolic sizes; trace it with the sizes of the arguments");
  int const last = g.regions[0].inputs - how.constants.size();
  G const whole = c99::with_constants(g, how.first_constant < 0 ? last : how.first_constant, how.constants);
  G const values = values_only(whole);
  G const flat = inline_calls(values);
  G const pure = functionalize(flat, purpose::values);
  if (has_mutation(pure))
    refuse::argument_is_invalid("emit_c",
                                "the graph writes into its argument; write into a clone of it, and return that");
  G const typed = as_traced<>(pure);
  G const ready = prepare(typed);
  G const numbers = how.unroll > 0 ? as_numbers(ready, how.unroll) : ready;
  G const better = how.fast_math ? varve::detail::relaxed<>(numbers) : numbers;
  c_program r = c99::file_writer::write(better, name, how);
  if (how.test.size() > 0) r.test = c99::self_test(how.test, interpret(whole, how.test), name, r.work);
  return r;
}
/// Returns an exported program (`varve/export.hpp`) as C99. Its parameters, buffers and constants become constants of
/// the text; its user inputs are the arguments. Throws `value_error` also for programs that write into their state or
/// have effects.
template <class P>
  requires requires(P const& p) {
    p.state;
    p.signature.outputs;
  }
c_program emit_c(P const& p, std::string const& name, c_options how = {}) {
  for (auto const& out : p.signature.outputs)
    if (out.is != std::remove_cvref_t<decltype(out)>::kind::user_output)
      refuse::argument_is_invalid("emit_c", "the program writes into its state or its arguments, or has effects, for "
                                            "which C has no place; return the values");
  how.constants = {}, how.first_constant = 0;
  for (auto const& t : p.state) how.constants.push_back(t);
  return emit_c(p.graph, name, how);
}
/// Returns a graph traced by the compiler as C99.
template <graph_sizes S>
c_program emit_c(static_graph<S> const& g, std::string const& name, c_options const& how = {}) {
  return emit_c(g.thaw(), name, how);
}

} // namespace varve

#pragma GCC diagnostic pop
