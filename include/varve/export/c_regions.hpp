// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_loops.hpp>

namespace varve::c99 {

/// A function of the text.
struct function_text {
  std::string name{}, parameters{}, body{};
  int variables = 0; // also of the functions that it calls
  bool fails = false;
  std::string first{}, last{}; // the arguments that its caller adds in front of all others, and behind them
};
inline void append(std::string& list, std::string const& x) {
  if (!x.empty()) list += (list.empty() ? "" : ", ") + x;
}

/// Writes the stages of a program that call functions of the text: branches, and loops of `scan` and `while_loop`.
class region_writer {
public:
  region_writer(writer& body_, context& shared_, fusion::program const& p_, fusion::stage const& s_)
      : body(body_), shared(shared_), p(p_), s(s_), c(p_.calls[s_.number]), sizes(shared_.sizes) {}
  VARVE_COLD void branch(function_text const& then, function_text const& otherwise) const {
    std::string const arguments = list_of(s.in[2], c.results, list_of(s.in[1], c.operands));
    body.open("if (" + element(p, s.in[0], "0") + ") {");
    call(then, arguments);
    body.close("} else {");
    body.indent();
    call(otherwise, arguments);
    body.close();
  }
  /// Writes a loop. Operands that it walks and outputs advance by one row a step; carried values alternate between two
  /// buffers. Outputs of steps that did not run are 0. `goes_on` is the condition of a `while_loop`. Returns the number
  /// of variables.
  VARVE_COLD int loop(function_text const& step, function_text const& goes_on) const {
    int const carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]);
    bool const open = c.condition >= 0, counted = c.at[0][3] != 0;
    extent const n = c.at[1][0];
    bool const bounded = n != 0, settles = open || counted || !n.is_number(); // settles: behind the loop
    auto row = [&](int slot) {
      extent const size = row_size(slot, n);
      if (n == 1 || size == 0) return first(slot);
      return first(slot) + " + " + (size == 1 ? "" : sizes(size, true) + " * ") + "row";
    };
    body.open("{");
    std::string in, now;
    for (int k = 0; k < carried; ++k) {
      std::string here = first(s.in[2] + k), there = first(s.in[2] + c.results + k), own_name = "here" + text(k);
      if (!settles && n.number() % 2) std::swap(here, there); // the last step writes to the result
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
    std::string const steps = counted ? "(" + shared.index + ")" + only(s.in[1] + walked) : sizes(n);
    bool const is_counted = !open || bounded || c.results > carried || cpp::mentions(in, "row");
    if (is_counted) body.line(shared.index + " step = 0;");
    body.open(open ? (is_counted ? "for (;; ++step) {" : "for (;;) {") : "for (; step < " + steps + "; ++step) {");
    if (open) {
      append(now, address(p, s.in[0]));
      call(goes_on, now);
      body.line("if (!" + element(p, s.in[0], "0") + ") break;");
      if (bounded) body.line("if (step == " + sizes(n) + ") return " + text(static_cast<int>(fault::steps)) + ";");
    }
    if (cpp::mentions(in, "row"))
      body.line("const " + shared.index + " row = " + (c.at[0][2] ? steps + " - 1 - step;" : std::string("step;")));
    call(step, in);
    for (int k = 0; k < carried; ++k) {
      std::string const q = text(k);
      body.line("swap" + q + " = here" + q + ", here" + q + " = there" + q + ", there" + q + " = swap" + q + ";");
    }
    body.close();
    for (int k = 0; k < c.results && settles; ++k) {
      int const slot = s.in[2] + k;
      if (k < carried)
        body.line("if (here" + text(k) + " != " + first(slot) + ") " +
                  (buffer(slot).elements == 1 ? only(slot) + " = *here" + text(k) + ";"
                                              : copy(first(slot), "here" + text(k), slot)));
      else if (open || counted)
        body.line("for (" + shared.index + " e = " + sizes(row_size(slot, n), true) + " * step; e < " +
                  sizes(buffer(slot).elements) + "; ++e) " + element(p, p.ports[slot], "e") + " = 0;");
    }
    body.close();
    return 3 * carried + 2;
  }

private:
  writer& body;
  context& shared;
  fusion::program const& p;
  fusion::stage const& s;
  fusion::call_info const& c;
  size_arguments& sizes;

  extent row_size(int slot, extent n) const { return sizes.quotient(buffer(slot).elements, n == 0 ? extent(1) : n); }
  fusion::buffer const& buffer(int slot) const { return p.buffers[p.ports[slot]]; }
  std::string first(int slot) const { return address(p, p.ports[slot]); }
  std::string only(int slot) const { return element(p, p.ports[slot], "0"); } // of a buffer with one element
  std::string copy(std::string const& to, std::string const& from, int slot) const {
    return "memcpy(" + to + ", " + from + ", " + sizes(buffer(slot).elements, true) + " * sizeof(*" + to + "));";
  }
  std::string list_of(int from, int count, std::string list = "") const {
    for (int k = 0; k < count; ++k) append(list, first(from + k));
    return list;
  }
  /// Writes the call of a function, and the return of its fault.
  void call(function_text const& f, std::string const& given) const {
    std::string arguments = f.first;
    append(arguments, given), append(arguments, f.last);
    std::string const text = f.name + "(" + arguments + ")";
    if (!f.fails) return body.line(text + ";");
    body.open("{");
    body.line("const int fault = " + text + ";");
    body.line("if (fault) return fault;");
    body.close();
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
