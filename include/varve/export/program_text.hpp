// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/custom/kept_custom_call.hpp>
#include <varve/custom/saved_functions.hpp>
#include <varve/export/exported_program.hpp>
#include <varve/fake/known_operators.hpp>
#include <varve/functional/functional_function.hpp>
#include <varve/graph/verify.hpp>
#include <varve/pass/inline_calls.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

/// @file
/// Exported programs as text, without the tensors of their state: one item a line, with exact numbers (floating ones in
/// hexadecimal). The first line contains the version of the format.
namespace varve {

namespace detail {
inline constexpr int program_text_version = 1;
inline constexpr std::string_view input_kinds[] = {"parameter", "buffer", "constant", "user_input", "token"},
                                  output_kinds[] = {"buffer_mutation", "parameter_mutation", "user_input_mutation",
                                                    "user_output", "token"},
                                  size_kinds[] = {"fixed", "automatic", "dynamic", "named"},
                                  size_ops[] = {"symbol",    "sum",   "product", "quotient",
                                                "remainder", "least", "greatest"},
                                  relations[] = {"equal", "unequal", "less", "less_equal"},
                                  modes[] = {"as_around", "off", "on"};

/// Writes the items of a program.
struct program_writer {
  std::string out{};

  void word(std::string_view w) {
    if (!out.empty() && out.back() != '\n') out += ' ';
    out += w;
  }
  void number(long long n) { word(std::to_string(n)); }
  void real(double v) { word(hex_text(v)); }
  void quoted(std::string_view s) {
    std::string q = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') q += '\\';
      if (c == '\n') q += "\\n";
      else q += c;
    }
    word(q + '"');
  }
  void size(extent e) { word(e.is_entry() ? "e" + std::to_string(e.entry()) : std::to_string(e.number())); }
  void sizes(dims const& d) {
    word("[");
    for (int k = 0; k < d.n; ++k) size(d[k]);
    word("]");
  }
  void line() { out += '\n'; }

  void write(exported_program const& p) {
    graph const& g = p.graph;
    if (!p.refused.empty()) refuse::with<value_error>(("varve: save: " + p.refused).c_str());
    word("varve_exported_program"), number(program_text_version), line();
    for (auto const& i : p.signature.inputs) word("input"), word(input_kinds[int(i.is)]), quoted(i.name), line();
    std::size_t const first = p.tokens(), last = first + p.state.size();
    for (std::size_t k = first; k < p.signature.inputs.size(); ++k)
      if (k < last ? p.state[k - first].has_history() : p.signature.inputs[k].requires_grad)
        word("requires_grad"), number(static_cast<index_t>(k)), line();
    for (auto const& o : p.signature.outputs)
      word("output"), word(output_kinds[int(o.is)]), quoted(o.name), number(o.input), line();
    for (auto const& c : p.constraints) {
      word("constraint"), number(c.input), number(c.axis), word(size_kinds[int(c.size.is)]), quoted(c.size.name);
      number(c.size.least), number(c.size.greatest), number(c.size.times), number(c.size.plus), line();
    }
    for (std::size_t k = 0; k < g.expressions.size(); ++k) {
      size_expression const& e = g.expressions.data()[k];
      word("size"), word(size_ops[int(e.op)]);
      if (e.op == size_op::symbol) number(e.a.number()), number(e.b.bits);
      else size(e.a), size(e.b);
      line();
    }
    for (size_guard const& s : g.guards)
      word("guard"), word(relations[int(s.is)]), size(s.left), size(s.right), size(s.unless), line();
    for (varve::kept_function const& f : g.functions) write_function(f);
    for (region const& r : g.regions) write_region(g, r);
    for (double v : g.constants) word("element"), real(v), line();
    word("end"), line();
  }

private:
  void flags(std::vector<bool> const& f) {
    number(static_cast<long long>(f.size()));
    for (bool b : f) number(b);
  }
  void write_function(varve::kept_function const& f) {
    auto const* const call = f.call.target<kept_custom_call<>>();
    word("function");
    if (!call) refuse_function(f.name);
    flags(call->given), flags(call->written), flags(call->returned), write_function(*call->f), line();
  }
  void write_function(boxed_custom_function const& f) {
    if (f.type() == &custom_type_mark<functional_custom_function<>>) {
      word("functional");
      return write_function(*static_cast<functional_custom_function<> const&>(f).inside());
    }
    if (f.type() == &custom_type_mark<mapped_custom_function<>>) {
      auto const& of = static_cast<mapped_custom_function<> const&>(f).as;
      word("mapped"), number(of.batch.n), number(static_cast<int>(of.batch.random)), flags(of.batch.mapped);
      return write_function(*of.f.f);
    }
    auto const* const known = saved_functions::find([&](auto const& e) { return e.type == f.type(); });
    if (!known) refuse_function(f.name());
    std::vector<std::string> const words = known->words(f);
    word("named"), quoted(known->name), number(static_cast<long long>(words.size()));
    for (auto const& w : words) word(w);
  }
  [[noreturn]] static void refuse_function(char const* name) {
    refuse::with<value_error>((std::string("varve: save: the program calls the custom function ") + name +
                               ", which no other process knows; register it by name, here and where the program is "
                               "read: saved_function<" +
                               name + ", tensor> const known(\"...\")")
                                  .c_str());
  }
  void write_region(graph const& g, region const& r) {
    word("region"), number(r.node_first), number(r.node_count), number(r.inputs), line();
    for (int n = r.node_first; n < r.node_first + r.node_count; ++n) {
      node const& nd = g.nodes[n];
      if (nd.op == &hop_handle<hints_wrapper_t>)
        refuse::with<value_error>(
            "varve: save: the hints of hints_wrapper are known to the process that made them alone; use "
            "wrap");
      if (nd.op->outlives_process && !nd.op->outlives_process(nd.at))
        refuse::with<value_error>((std::string("varve: save: ") + nd.op->name +
                                   " has an attribute that only this process knows, such as a communicator")
                                      .c_str());
      word("node"), quoted(nd.op->name), word(name(nd.out.type)), sizes(nd.out.sizes);
      word("operands"), number(nd.count);
      for (int k = 0; k < nd.count; ++k) number(g.edges[nd.first + k]);
      word("attributes"), number(nd.at.count);
      for (int k = 0; k < nd.at.count; ++k) sizes(nd.at[k]);
      word("regions"), number(nd.regions_first), number(nd.regions_count);
      word("value"), real(nd.value), word("mode"), word(modes[int(nd.mode)]);
      if (nd.function >= 0) word("calls"), number(nd.function);
      if (nd.text) word("text");
      line();
    }
    word("results"), number(r.result_count);
    for (int k = 0; k < r.result_count; ++k) number(g.results[r.result_first + k]);
    line();
  }
};

/// Reads words and numbers, and reports the place of errors.
class text_reader {
public:
  explicit text_reader(std::string_view text) : text_(text) {}

  [[noreturn]] void refuse(std::string const& what) const {
    std::size_t line = 1, column = 1;
    for (std::size_t k = 0; k < start_ && k < text_.size(); ++k) text_[k] == '\n' ? (++line, column = 1) : ++column;
    refuse::with<value_error>(
        ("varve: load: line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what).c_str());
  }
  /// Returns the number of remaining characters, an upper bound for every count.
  std::size_t left() const { return text_.size() - at_; }
  std::string_view word(char const* what) {
    skip();
    std::size_t const from = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    if (from == at_) refuse(std::string(what) + " expected, found the end of the text");
    return text_.substr(from, at_ - from);
  }
  std::string_view peek() {
    std::size_t const at = at_, start = start_;
    skip();
    std::size_t const from = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    std::string_view const w = text_.substr(from, at_ - from);
    at_ = at, start_ = start;
    return w;
  }
  void expect(std::string_view w) {
    if (std::string_view const found = word(std::string(w).c_str()); found != w)
      refuse("\"" + std::string(w) + "\" expected, found \"" + std::string(found.substr(0, 40)) + "\"");
  }
  long long number(char const* what, long long least, long long greatest) {
    std::string_view const w = word(what);
    long long n = 0;
    auto const r = std::from_chars(w.data(), w.data() + w.size(), n);
    if (r.ec != std::errc() || r.ptr != w.data() + w.size())
      refuse(std::string(what) + " expected, found \"" + std::string(w.substr(0, 40)) + "\"");
    if (n < least || n > greatest)
      refuse(std::string(what) + " is " + std::to_string(n) + ", and must be from " + std::to_string(least) + " to " +
             std::to_string(greatest));
    return n;
  }
  double real(char const* what) {
    std::string const w(word(what).substr(0, 60));
    double v = 0;
    if (!read_number(w, v)) refuse(std::string(what) + " expected, found \"" + w + "\"");
    return v;
  }
  std::string quoted(char const* what) {
    skip();
    if (at_ >= text_.size() || text_[at_] != '"') refuse(std::string(what) + " in quotes expected");
    std::string r;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n') refuse(std::string(what) + " has no closing quote");
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) r += text_[++at_] == 'n' ? '\n' : text_[at_];
      else r += text_[at_];
    }
    if (at_ >= text_.size()) refuse(std::string(what) + " has no closing quote");
    ++at_;
    return r;
  }
  template <std::size_t N>
  int one_of(std::string_view const (&names)[N], char const* what) {
    std::string_view const w = word(what);
    for (std::size_t k = 0; k < N; ++k)
      if (names[k] == w) return static_cast<int>(k);
    refuse(std::string(what) + " expected, found \"" + std::string(w.substr(0, 40)) + "\"");
  }

private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    start_ = at_;
  }
  std::string_view text_;
  std::size_t at_ = 0, start_ = 0; // start_: the beginning of the last word
};

/// Finds an operator by name: built-in graph nodes, higher-order operators and operators of this program.
inline op_handle const* handle_of_name(std::string const& name) {
  for (op_handle const* h :
       {&placeholder_handle, &constant_handle, &getitem_handle, &sym_numel_handle, &hop_handle<custom_function_t>})
    if (name == h->name) return h;
  know_higher_order_operators();
  if (higher_order_operator const* const o = higher_order_operator::find(name.c_str()); o && o->node())
    return o->node();
  op_table const* const t = ops::find(name.c_str());
  return t ? t->node() : nullptr;
}

/// Reads a program and checks each item, so that no malformed text yields a graph (`value_error`).
template <class G = graph>
class program_reader {
public:
  explicit program_reader(std::string_view text) : in_(text) {}

  exported_program read() {
    in_.expect("varve_exported_program");
    if (auto const v = in_.number("a version", 0, 1 << 20); v != program_text_version)
      in_.refuse("the text is of version " + std::to_string(v) + " of the format, and this library reads version " +
                 std::to_string(program_text_version));
    for (std::string_view w = in_.peek(); w != "end"; w = in_.peek()) {
      in_.expect(w);
      if (w == "input") read_input();
      else if (w == "requires_grad") read_requires_grad();
      else if (w == "output") read_output();
      else if (w == "constraint") read_constraint();
      else if (w == "size") read_size();
      else if (w == "guard") read_guard();
      else if (w == "function") read_function();
      else if (w == "region") read_region();
      else if (w == "element") g_.constants.push_back(in_.real("a number"));
      else in_.refuse("an item of a program expected, found \"" + std::string(w.substr(0, 40)) + "\"");
    }
    in_.expect("end");
    finish();
    p_.graph = std::move(g_);
    return std::move(p_);
  }

private:
  void read_input() {
    auto const is = static_cast<input_spec::kind>(in_.one_of(input_kinds, "a kind of input"));
    p_.signature.inputs.push_back({is, in_.quoted("a name")});
  }
  void read_requires_grad() {
    index_t const k = in_.number("an input", 0, index_t(p_.signature.inputs.size()) - 1);
    input_spec& i = p_.signature.inputs[static_cast<std::size_t>(k)];
    if (i.is == input_spec::kind::user_input || i.is == input_spec::kind::token)
      in_.refuse("an input of the state expected");
    i.requires_grad = true;
  }
  void read_output() {
    auto const is = static_cast<output_spec::kind>(in_.one_of(output_kinds, "a kind of output"));
    std::string name = in_.quoted("a name");
    int const input = static_cast<int>(in_.number("an input", -1, index_t(p_.signature.inputs.size()) - 1));
    if ((is == output_spec::kind::user_output || is == output_spec::kind::token) != (input < 0))
      in_.refuse("what is written is an input, no other is");
    p_.signature.outputs.push_back({is, std::move(name), input});
  }
  void read_constraint() {
    range_constraint c{};
    c.input = static_cast<int>(in_.number("an input", 0, index_t(p_.signature.inputs.size())));
    c.axis = static_cast<int>(in_.number("an axis", 0, max_rank - 1));
    c.size.is = static_cast<dim_spec::kind>(in_.one_of(size_kinds, "a kind of size"));
    c.size.name = in_.quoted("a name");
    constexpr long long most = size_range::unlimited;
    c.size.least = in_.number("a size", 0, most), c.size.greatest = in_.number("a size", 0, most);
    c.size.times = in_.number("a factor", 1, 1 << 30), c.size.plus = in_.number("a number", -(1 << 30), 1 << 30);
    p_.constraints.push_back(std::move(c));
  }
  void read_size() {
    auto const op = static_cast<size_op>(in_.one_of(size_ops, "an operation on sizes"));
    if (op == size_op::symbol) {
      long long const k = in_.number("a symbol's number", 0, index_t(sizes_.size()));
      extent name = 0;
      name.bits = in_.number("a symbol's name", INT64_MIN, INT64_MAX);
      if (!name.is_name()) in_.refuse("a symbol's name expected");
      for (size_expression const& e : sizes_)
        if (e.op == size_op::symbol && (e.a.number() == k || known_equal(e.b, name)))
          in_.refuse("the symbol was defined before");
      sizes_.push_back({op, static_cast<index_t>(k), name});
    } else {
      extent const a = size(), b = size();
      if ((op == size_op::quotient || op == size_op::remainder) && b.is_number() && b.number() == 0)
        in_.refuse("a division by 0");
      sizes_.push_back({op, a, b});
    }
  }
  void read_guard() {
    size_guard s{static_cast<relation>(in_.one_of(relations, "a relation")), 0, 0};
    s.left = size(), s.right = size(), s.unless = size();
    g_.guards.push_back(s);
  }
  extent size() {
    if (std::string_view const w = in_.peek(); w.size() > 1 && w[0] == 'e') {
      in_.expect(w);
      index_t k = -1;
      auto const r = std::from_chars(w.data() + 1, w.data() + w.size(), k);
      if (r.ec != std::errc() || r.ptr != w.data() + w.size() || k < 0 || k >= index_t(sizes_.size()))
        in_.refuse("a size that was defined before expected, found \"" + std::string(w.substr(0, 40)) + "\"");
      return extent::entry(k);
    }
    // Sizes are also attributes, in which a number greater than any size means the end of an axis.
    extent const e(static_cast<index_t>(in_.number("a size", INT64_MIN, INT64_MAX)));
    if (!e.is_number()) in_.refuse("a size that is greater than any");
    return e;
  }
  dims list_of_sizes() {
    dims d{};
    in_.expect("[");
    while (in_.peek() != "]") {
      if (d.n == max_rank) in_.refuse("more sizes than a tensor can have");
      d.push_back(size());
    }
    in_.expect("]");
    return d;
  }
  std::vector<bool> flags() {
    std::vector<bool> r(static_cast<std::size_t>(in_.number("a number of flags", 0, index_t(in_.left()))));
    for (std::size_t k = 0; k < r.size(); ++k) r[k] = in_.number("a flag", 0, 1) != 0;
    return r;
  }
  /// Reads a custom function by name, with the layers around it. Sets the numbers of its argument `tensors` and of its
  /// `results`.
  custom_function_ptr read_function(std::size_t& tensors, std::size_t& results, int depth = 0) {
    if (depth > 16) in_.refuse("a custom function inside of too many others");
    std::string_view const w = in_.word("a custom function");
    if (w == "functional")
      return std::make_shared<functional_custom_function<> const>(read_function(tensors, results, depth + 1));
    if (w == "mapped") {
      index_t const n = in_.number("a number of lanes", 0, index_t{1} << 40);
      auto const random = static_cast<random_policy>(in_.number("a policy", 0, 2));
      boxed_batch b{flags(), n, random};
      std::size_t const count = b.mapped.size();
      auto f = read_function(tensors, results, depth + 1);
      if (count != tensors) in_.refuse("a custom function is mapped over another number of tensors than it takes");
      return std::make_shared<mapped_custom_function<> const>(std::move(f), std::move(b));
    }
    if (w != "named") in_.refuse("a custom function expected, found \"" + std::string(w.substr(0, 40)) + "\"");
    std::string const name = in_.quoted("a name");
    auto const* const known = saved_functions::find([&](auto const& e) { return e.name == name; });
    if (!known)
      in_.refuse("the program calls the custom function " + name +
                 ", which is not registered here; register it before by saved_function<...> const known(\"" + name +
                 "\")");
    std::vector<std::string> words(static_cast<std::size_t>(in_.number("a number of words", 0, index_t(in_.left()))));
    for (auto& word : words) word = in_.word("an argument");
    auto f = known->make(words, tensors);
    if (!f) in_.refuse("the custom function " + name + " is registered here with other arguments");
    results = known->results;
    return f;
  }
  void read_function() {
    kept_custom_call<> call{nullptr, flags(), flags(), flags()};
    std::size_t tensors = 0, results = 0;
    call.f = read_function(tensors, results);
    if (call.given.size() != tensors || call.written.size() != tensors || call.returned.size() != results)
      in_.refuse(std::string("the custom function ") + call.f->name() + " has other arguments or results here");
    for (std::size_t k = 0; k < tensors; ++k)
      if (call.written[k] && !call.given[k]) in_.refuse("a custom function writes into what it is not given");
    int const operands = static_cast<int>(std::count(call.given.begin(), call.given.end(), true));
    char const* const name = call.f->name();
    g_.functions.push_back({std::move(call), name, operands});
  }
  void read_region() {
    region r{};
    r.node_first = static_cast<int>(in_.number("the first node", index_t(g_.nodes.size()), index_t(g_.nodes.size())));
    r.node_count = static_cast<int>(in_.number("a number of nodes", 0, index_t(in_.left())));
    r.inputs = static_cast<int>(in_.number("a number of inputs", 0, r.node_count));
    for (int k = 0; k < r.node_count; ++k) read_node();
    in_.expect("results");
    r.result_first = static_cast<int>(g_.results.size());
    r.result_count = static_cast<int>(in_.number("a number of results", 0, index_t(in_.left())));
    for (int k = 0; k < r.result_count; ++k)
      g_.results.push_back(static_cast<int>(in_.number("a node", r.node_first, r.node_first + r.node_count - 1)));
    g_.regions.push_back(r);
  }
  void read_node() {
    in_.expect("node");
    node n;
    std::string const name = in_.quoted("an operator");
    n.op = handle_of_name(name);
    if (!n.op)
      in_.refuse("the operator " + name +
                 " is not in this program; call it on a tensor anywhere, or link the compiled "
                 "library, which has all");
    n.out.type = read_type();
    n.out.sizes = list_of_sizes();
    in_.expect("operands");
    n.first = static_cast<int>(g_.edges.size());
    n.count = static_cast<int>(in_.number("a number of operands", 0, index_t(in_.left())));
    for (int k = 0; k < n.count; ++k)
      g_.edges.push_back(static_cast<int>(in_.number("a node", 0, index_t(g_.nodes.size()) - 1)));
    in_.expect("attributes");
    n.at.count = static_cast<int>(in_.number("a number of attributes", 0, attributes::capacity));
    for (int k = 0; k < n.at.count; ++k) n.at.fact[k] = list_of_sizes();
    in_.expect("regions");
    n.regions_first = static_cast<int>(in_.number("a region", 0, index_t(in_.left())));
    n.regions_count = static_cast<int>(in_.number("a number of regions", 0, 2));
    in_.expect("value");
    n.value = in_.real("a number");
    in_.expect("mode");
    n.mode = static_cast<recording>(in_.one_of(modes, "a grad mode"));
    if (in_.peek() == "calls") {
      in_.expect("calls");
      n.function = static_cast<int>(in_.number("a custom function", 0, index_t(g_.functions.size()) - 1));
    }
    if (in_.peek() == "text") in_.expect("text"), n.text = true;
    if ((n.op == &hop_handle<custom_function_t>) != (n.function >= 0))
      in_.refuse("nodes that call a custom function say which, and no others");
    if (n.function >= 0 && g_.functions[n.function].operands > n.count)
      in_.refuse("a custom function of more operands than its node has");
    g_.nodes.push_back(n);
  }
  dtype read_type() {
    std::string_view const w = in_.word("a dtype");
    for (int k = 0; k <= static_cast<int>(dtype::int16); ++k)
      if (w == name(static_cast<dtype>(k))) return static_cast<dtype>(k);
    in_.refuse("a dtype expected, found \"" + std::string(w.substr(0, 40)) + "\"");
  }
  /// Checks what no single item can check.
  void finish() {
    if (g_.regions.empty()) in_.refuse("the program has no graph");
    g_.expressions = size_table(sizes_.data(), sizes_.data() + sizes_.size());
    for (node const& n : g_.nodes) {
      bool const hop = n.op->kind == op_kind::hop && n.op != &getitem_handle;
      if (hop != (n.regions_count > 0)) in_.refuse("functions stand with operators that have some");
      for (int k = 0; k < n.regions_count; ++k) // regions come later than their node: no cycles
        if (n.regions_first + k >= static_cast<int>(g_.regions.size()) || n.regions_first == 0 ||
            g_.regions[n.regions_first + k].node_first <= &n - g_.nodes.data())
          in_.refuse("a function of an operator is missing");
      if (n.function < 0) continue;
      auto const& returned = g_.functions[n.function].call.template target<kept_custom_call<>>()->returned;
      auto const values = static_cast<int>(std::count(returned.begin(), returned.end(), true));
      if (values == 0 || values != g_.regions[n.regions_first].result_count)
        in_.refuse("a custom function of other results than its text");
    }
    if (verdict const v = verify(g_); !v)
      in_.refuse("the graph is none: at node " + std::to_string(v.node) + " flaw " +
                 std::to_string(static_cast<int>(v.what)));
    auto const inputs = p_.signature.inputs.size();
    if (static_cast<std::size_t>(g_.regions[0].inputs) != inputs ||
        static_cast<std::size_t>(g_.regions[0].result_count) != p_.signature.outputs.size())
      in_.refuse("the graph has other inputs or outputs than the program");
    for (std::size_t k = 0; k < inputs; ++k)
      if ((p_.signature.inputs[k].is == input_spec::kind::token) && k > 0) in_.refuse("a token is the first input");
    for (std::size_t k = 0; k < p_.signature.outputs.size(); ++k)
      if (p_.signature.outputs[k].is == output_spec::kind::token && (k > 0 || !p_.tokens()))
        in_.refuse("a token is the first output where one is the first input");
    if (p_.tokens() && p_.signature.count(output_spec::kind::token) == 0) in_.refuse("a token that ends nowhere");
    std::size_t const state = inputs - static_cast<std::size_t>(p_.signature.count(input_spec::kind::user_input));
    for (std::size_t k = 0; k < inputs; ++k)
      if ((p_.signature.inputs[k].is == input_spec::kind::user_input) != (k >= state))
        in_.refuse("user inputs stand behind the state");
    for (auto const& c : p_.constraints)
      if (static_cast<std::size_t>(c.input) >= inputs - state) in_.refuse("a constraint of an input that is not there");
  }

  text_reader in_;
  exported_program p_{};
  G g_{};
  list<size_expression> sizes_{};
};
} // namespace detail

namespace detail {
/// True if a reader of the text finds the operator by its name.
inline bool is_known_by_name(op_handle const& op) { return handle_of_name(op.name) == &op; }
} // namespace detail

/// Returns a program as text, without its state. Calls that are not known by name, such as composites that a trace
/// kept, are replaced by their parts. Custom functions are written with the name of their `saved_function`. Throws
/// `value_error` if one is not registered.
inline std::string to_text(exported_program const& p) {
  detail::program_writer w;
  exported_program parts = p;
  parts.graph = inline_calls(p.graph, &detail::is_known_by_name);
  w.write(parts);
  return std::move(w.out);
}
/// Returns the program of a text. Throws `value_error` with the line and column of an error. The operators of the
/// program must exist in this process. Allocates nothing beyond the size of the text.
inline exported_program program_from_text(std::string_view text) { return detail::program_reader<>(text).read(); }

} // namespace varve

#pragma GCC diagnostic pop
