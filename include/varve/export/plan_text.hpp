// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/graph/print.hpp>
#include <varve/plan/program.hpp>

#include <string>
#include <vector>

/// @file
/// What the texts of a planned program in C++ and in C have in common: names of buffers, addresses, and the steps that
/// a loop nest uses.
namespace varve::cpp {

/// Returns the name of a buffer in the text: arguments `x0`, results `y0`, and by node constants `c5` and temporaries
/// `t7`.
VARVE_COLD inline std::string buffer_name(fusion::program const& p, int k) {
  fusion::buffer const& b = p.buffers[k];
  if (b.where == fusion::place::argument) return "x" + std::to_string(b.number);
  if (b.where == fusion::place::result) return "y" + std::to_string(b.number);
  if (b.node < 0) return "s" + std::to_string(k);
  return (b.where == fusion::place::constant ? "c" : "t") + std::to_string(b.node);
}
inline std::string text(index_t n) { return std::to_string(n); }
/// Refuses an operator for which there is no text. Names those that a user has called, if it is a part of others.
[[noreturn]] VARVE_COLD inline void refuse_call(char const* where, op_handle const& op) {
  std::string const called_as = op.part_of ? std::string(" (a part of ") + op.part_of + ")" : std::string();
  refuse::argument_is_invalid(where, (std::string("operator ") + op.name + called_as +
                                      " cannot be written as a loop; call it outside of the graph")
                                         .c_str());
}
/// Writes the sizes of programs without symbolic ones.
struct plain_sizes {
  std::string operator()(index_t n, bool /* factor */ = false) const { return text(n); }
};

/// True if a text contains the identifier `x`, not only a longer one of which `x` is a part.
VARVE_COLD inline bool mentions(std::string const& body, std::string const& x) {
  auto const part = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  for (std::size_t at = body.find(x); at != std::string::npos; at = body.find(x, at + 1))
    if (!(at > 0 && part(body[at - 1])) && !(at + x.size() < body.size() && part(body[at + x.size()]))) return true;
  return false;
}
/// Returns the arguments and results of a function: "(x: float32[3]) -> (float32[])".
VARVE_COLD inline std::string signature_text(graph const& f, fusion::program const& p) {
  std::string s = "(";
  auto called = [](char const* name) { return name ? std::string(name) + ": " : ""; };
  for (int k = 0; k < f.regions[0].inputs; ++k)
    s += (k ? ", " : "") + called(varve::detail::argument_name(f, k)) + varve::detail::meta_text(f, f.nodes[k].out);
  s += ") -> (";
  for (int k = 0; k < static_cast<int>(p.results.size()); ++k)
    s += (k ? ", " : "") + called(varve::detail::result_name(f, 0, k)) + varve::detail::meta_text(f, p.results[k]);
  return s + ")";
}
/// Returns a comment with the nodes that a loop nest computes and its extents: "// %7, %9 over 3 x 4".
template <class Sizes = plain_sizes>
VARVE_COLD std::string leaves(fusion::program const& p, fusion::body const& b, Sizes const& sizes = {}) {
  std::string s;
  for (int k = 0; k < b.sink_count; ++k) {
    fusion::buffer const& to = p.buffers[p.accesses[p.sinks[b.sink_first + k].access].buffer];
    std::string const node = "%" + text(to.node);
    if (s.find(node + ",") == std::string::npos && (s.size() < node.size() || s.substr(s.size() - node.size()) != node))
      s += (s.empty() ? "// " : ", ") + node;
  }
  for (int l = 0; l < b.rank; ++l) s += (l ? " x " : " over ") + sizes(b.extent[l], true);
  return s;
}

/// One loop nest of a program, of which a text is written.
class nest_reader {
protected:
  fusion::program const& p;
  fusion::body const& b;
  std::vector<char> used_fixed, used_now; // the steps before the innermost loop, and in it, that a result needs

  nest_reader(fusion::program const& p_, fusion::body const& b_) : p(p_), b(b_) {
    used_fixed.resize(static_cast<std::size_t>(b.fixed_count)), used_now.resize(static_cast<std::size_t>(b.step_count));
  }
  fusion::step const& fixed_step(std::size_t k) const { return p.steps[b.fixed_first + static_cast<int>(k)]; }
  fusion::step const& now_step(std::size_t k) const { return p.steps[b.step_first + static_cast<int>(k)]; }
  fusion::step const& step_of(int s) const {
    return s >= 0 ? now_step(static_cast<std::size_t>(s)) : fixed_step(static_cast<std::size_t>(~s));
  }
  fusion::sink const& sink(int k) const { return p.sinks[b.sink_first + k]; }
  dtype target_type(fusion::sink const& s) const { return p.buffers[p.accesses[s.access].buffer].type; }
  int operand(fusion::step const& s, int k) const { return k < 3 ? s.in[k] : p.ports[s.args + k]; }
  /// Marks the steps on which a sink depends.
  void find_used() {
    auto use = [&](int s) {
      (s >= 0 ? used_now[static_cast<std::size_t>(s)] : used_fixed[static_cast<std::size_t>(~s)]) = 1;
    };
    for (int k = 0; k < b.sink_count; ++k) {
      use(sink(k).a);
      if (sink(k).product) use(sink(k).b);
    }
    auto sweep = [&](std::vector<char>& used, auto step) {
      for (std::size_t k = used.size(); k-- > 0;)
        for (int q = 0; used[k] && q < step(k).count; ++q) use(operand(step(k), q));
    };
    sweep(used_now, [&](std::size_t k) -> fusion::step const& { return now_step(k); });
    sweep(used_fixed, [&](std::size_t k) -> fusion::step const& { return fixed_step(k); });
  }
  /// Returns an affine function of the loop indices.
  template <class Sizes = plain_sizes>
  std::string index(fusion::access const& a, Sizes const& sizes = {}) const {
    std::string s;
    for (int l = 0; l < b.rank; ++l)
      if (a.stride[l] != 0 && b.extent[l] != 1)
        s += (s.empty() ? "" : " + ") + (a.stride[l] == 1 ? "" : sizes(a.stride[l], true) + " * ") + "i" + text(l);
    if (a.offset != 0 || s.empty()) s += (s.empty() ? "" : " + ") + sizes(a.offset);
    return s;
  }
};

} // namespace varve::cpp

#pragma GCC diagnostic pop
