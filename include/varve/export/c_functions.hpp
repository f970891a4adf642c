// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_calls.hpp>
#include <varve/export/c_plans.hpp>
#include <varve/export/c_regions.hpp>

namespace varve::c99 {

/// Writes the functions of planned graphs. Those of higher-order operators come before their callers.
class function_writer {
public:
  /// The functions that were written, without the last one.
  writer all{};

  function_writer(function_plans const& plans, context& shared_, bool on_stack_)
      : all_plans(plans), shared(shared_), on_stack(on_stack_) {}
  /// Writes region `r` as the function `called`: first the functions that it calls, then its own.
  VARVE_COLD function_text write(int r, std::string const& called, std::string const& what = "") {
    graph const f = all_plans.function(r);
    fusion::program const& p = plan_of(r);
    function_text own{called};
    writer body, head;
    body.indent(), head.indent();
    int most = 0, calls = 0;
    for (fusion::stage const& s : p.stages) stage(r, s, body, own, most, calls);
    for (int k = 0; k < static_cast<int>(p.buffers.size()); ++k)
      own.variables += is_local(p, k) && cpp::mentions(body.text, buffer_name(p, k));
    own.variables += most + calls;
    bool const divides = cpp::mentions(body.text, "status");
    own.fails = own.fails || divides || cpp::mentions(body.text, "return");
    names(f, r, body.text, head);
    own.first = shared.sizes.list_of("", true, &(own.body = head.text + body.text));
    own.parameters = parameters(f, r, own.body);
    if (r == 0) {
      writer sizes;
      sizes.indent();
      shared.sizes.begin(own.body, static_cast<int>(fault::sizes), sizes);
      head.text = sizes.text + head.text;
    }
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

private:
  function_plans const& all_plans;
  context& shared;
  bool on_stack;

  fusion::program const& plan_of(int r) const { return all_plans.plan_of(r); }
  layout const& layout_of(int r) const { return all_plans.layout_of(r); }
  bool has_work(int r) const { return !on_stack && all_plans.arrays(r) != 0; }
  std::string parameters(graph const& f, int r, std::string const& body) const {
    fusion::program const& p = plan_of(r);
    std::string s = r ? shared.sizes.list_of("ptrdiff_t ", true, &body) : std::string();
    for (std::string const& n : shared.sizes.names)
      if (r == 0) append(s, "size_t " + shared.sizes.parameter(n, body));
    for (int k = 0; k < f.regions[0].inputs; ++k)
      append(s, "const " + std::string(type_text(f.nodes[k].out.type)) + " *x" + text(k));
    for (int k = 0; k < static_cast<int>(p.results.size()); ++k)
      append(s, std::string(type_text(p.results[k].type)) + " *restrict y" + text(k));
    if (has_work(r)) append(s, "void *work");
    return s.empty() ? "void" : s;
  }
  /// Writes the constants, temporaries and unused parameters of a function with this body.
  void names(graph const& f, int r, std::string const& body, writer& out) const {
    fusion::program const& p = plan_of(r);
    int const buffers = static_cast<int>(p.buffers.size());
    for (int k = 0; k < buffers; ++k) {
      fusion::buffer const& b = p.buffers[k];
      std::string const n = buffer_name(p, k);
      if (b.where != fusion::place::constant || !cpp::mentions(body, n)) continue;
      std::string line = "static const " + std::string(type_text(b.type)) + " " + n + "[" +
                         text(b.elements ? b.elements : 1) + "] = {" + (b.elements ? "" : "0");
      for (index_t e = 0; e < b.elements; ++e)
        line += (e ? ", " : "") + literal(b.type, p.constants[b.number + e]).text;
      out.line(line + "};");
    }
    for (dtype const t : element_types) {
      std::string line;
      for (int k = 0; k < buffers; ++k)
        if (is_local(p, k) && p.buffers[k].type == t)
          if (std::string const n = buffer_name(p, k); cpp::mentions(body, n)) append(line, n);
      if (!line.empty()) out.line(std::string(type_text(t)) + " " + line + ";");
    }
    arrays_of(r, body, out);
    auto unused = [&](std::string const& x, std::string const& text) {
      if (!cpp::mentions(text, x)) out.line("(void)" + x + ";");
    };
    for (int k = 0; k < f.regions[0].inputs; ++k) unused("x" + text(k), body);
    for (std::size_t k = 0; k < p.results.size(); ++k) unused("y" + std::to_string(k), body);
    if (has_work(r)) unused("work", body + out.text);
  }
  void arrays_of(int r, std::string const& body, writer& out) const {
    fusion::program const& p = plan_of(r);
    layout const& l = layout_of(r);
    for (layout::piece const& piece : l.pieces) {
      std::string const base = std::string("w_") + ending(piece.type);
      bool opened = false;
      for (std::size_t k = 0; k < l.at.size(); ++k) {
        fusion::buffer const& b = p.buffers[static_cast<std::ptrdiff_t>(k)];
        std::string const n = buffer_name(p, static_cast<int>(k)), type = type_text(b.type);
        if (l.piece_of[k] != static_cast<int>(&piece - l.pieces.data()) || !cpp::mentions(body, n)) continue;
        if (on_stack && !piece.shared) {
          out.line(type + " " + n + (b.elements ? "[" + text(b.elements) + "];" : "[1] = {0};")); // nothing writes it
          continue;
        }
        if (on_stack && !opened)
          out.line(type + " " + base + "[" + text((piece.bytes / itemsize(piece.type)).number()) + "];");
        opened = true;
        std::string const from = l.at[k] ? " + " + text(l.at[k]) : "", named = type + " *const " + n + " = ";
        if (on_stack) out.line(named + base + from + ";");
        else if (piece.begin == 0) out.line(named + "(" + type + " *)work" + from + ";");
        else out.line(named + "(" + type + " *)((char *)work + " + shared.sizes(piece.begin) + ")" + from + ";");
      }
    }
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
  void stage(int r, fusion::stage const& s, writer& body, function_text& own, int& most, int& calls) {
    fusion::program const& p = plan_of(r);
    auto const regions = [&] { return region_writer(body, shared, p, s); }; // for stages that have a call
    auto const callee = [&](int q, char const* name, char const* what) {
      function_text f = write(q, own.name + name + text(s.number), what);
      if (has_work(q))
        f.last = layout_of(r).bytes != 0 ? "(char *)work + " + shared.sizes(layout_of(r).aligned) : "work";
      own.fails = own.fails || f.fails;
      calls = (std::max)(calls, f.variables);
      return f;
    };
    if (s.kind == fusion::stage_kind::loops) {
      fusion::body const& b = p.bodies[s.number];
      if (shared.nodes) body.line(cpp::leaves(p, b, shared.sizes));
      writer nest;
      nest.indent();
      most = (std::max)(most, loop_writer::write(nest, shared, p, b));
      if (p.stages.size() == 1 || !declares(nest.text)) {
        body.text += nest.text;
      } else { // its names are its own
        body.open("{");
        loop_writer::write(body, shared, p, b);
        body.close();
      }
    } else if (s.kind == fusion::stage_kind::fill) {
      fusion::buffer const& b = p.buffers[s.out];
      std::string const x =
          s.value == 0 ? literal(b.type, 0).text
                       : neutral(s.value < 0 ? fusion::sink_kind::greatest : fusion::sink_kind::least, b.type).text;
      body.line(
          (is_local(p, s.out) ? "" : "for (" + shared.index + " e = 0; e < " + shared.sizes(b.elements) + "; ++e) ") +
          element(p, s.out, "e") + " = " + x + ";");
    } else if (s.kind == fusion::stage_kind::branch) {
      int const then = p.calls[s.number].region;
      function_text const f = callee(then, "_then", "where the predicate of a cond holds"),
                          h = callee(then + 1, "_else", "where it does not");
      regions().branch(f, h);
    } else if (s.kind == fusion::stage_kind::scan) {
      int const step = p.calls[s.number].region, goes_on = p.calls[s.number].condition;
      function_text const f = callee(step, "_step", goes_on >= 0 ? "one step of a while_loop" : "one step of a scan");
      function_text const on = goes_on >= 0 ? callee(goes_on, "_goes_on", "true if it goes on") : function_text{};
      most = (std::max)(most, regions().loop(f, on));
    } else {
      if (shared.nodes) body.line("// %" + text(p.buffers[s.out].node));
      call_writer::write(body, shared, p, s);
      most = (std::max)(most, 8); // its indices
    }
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
