// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/aot/joint_graph.hpp>
#include <varve/export/draft_report.hpp>
#include <varve/export/exported_program.hpp>
#include <varve/pass/optimize.hpp>

#include <algorithm>
#include <utility>

namespace varve {

/// Options for exporting a function.
struct export_options {
  /// The sizes of the argument tensors, in their order. Arguments without an entry have the sizes of the example.
  std::vector<tensor_dims> dynamic_shapes{};
  /// The sizes of arguments, looked up by the argument tensors themselves.
  shapes_collection shapes{};
  /// The names of the arguments; by default `x0`, `x1`, ...
  std::vector<std::string> names{};
  /// The parameters and buffers that the function captures, with names. Other captured tensors are constants.
  std::vector<module_state> state{};
  /// The names of the results, one for each tensor that the function returns; by default `output_0`, `output_1`, ...
  std::vector<std::string> results{};
};

namespace detail {
/// Implements `export_program` after type erasure of the function.
template <class T = tensor>
exported_program export_call(boxed_call const& call, export_options const& how);
} // namespace detail

/// Exports a function: `export_program(f, options)(x...)` returns the whole program of `f` as a value. It consists of a
/// graph without writes and, as its state, the tensors that f captures. Sizes are those of the example, except where
/// `dynamic_shapes` says otherwise.
///
/// Writes into buffers and arguments, and assignments to buffers, are part of the program. Results may be a tree of
/// tensors; all are results of the graph, and views become separate values. Effects (`print`) keep their order: each
/// takes the token of the one before. Gradients that f computes, with `backward` too, are part of the program.
///
/// The program can be differentiated like f: what f detaches or computes in `no_grad` mode has no derivative. Reading a
/// value after a write that autograd did not record throws `transform_error`. A program exported in `no_grad` mode
/// computes values only. Queries of `requires_grad()` give the answer for the example.
///
/// Throws `value_error` for examples that do not match their specifications, for sizes that the program cannot leave
/// free (the message suggests a fix), for names of results that do not fit them, and for assignments to attributes.
/// Throws `data_dependent_error` where C++ would decide by data. Other errors are those of `make_fx`.
///
/// An exported program can be exported again, with other sizes and examples. It keeps its state and names, and is valid
/// for arguments that satisfy both specifications.
template <class F>
class export_program {
public:
  explicit export_program(F f, export_options o = {}) : f_(std::move(f)), how_(std::move(o)) {}

  template <class... X>
  exported_program operator()(X const&... x) const {
    std::vector<tensor> own;
    detail::boxed_call_with<X...> const call(&f_, &detail::run_boxed<F, X...>, x...);
    return detail::export_call<>(call, options(own));
  }

private:
  template <class>
  friend class draft_export;
  /// Returns the options, with the names and the state of the program if a program is exported again.
  export_options options([[maybe_unused]] std::vector<tensor>& own) const {
    export_options r = how_;
    if constexpr (std::is_same_v<F, exported_program>)
      if (r.state.empty() && r.names.empty() && !f_.signature.inputs.empty()) {
        own = f_.state;
        r.names = f_.user_inputs(), r.state = f_.named_state(own);
        if (r.results.empty()) r.results = f_.user_outputs();
      }
    return r;
  }

  F f_;
  export_options how_;
};

#if VARVE_DEFINES_CAPTURE
namespace detail {
/// The sizes of an export, with symbols for those that may vary.
template <class Mode>
class on_exported_values : protected shape_environment, read_watcher, protected on_fake_values<Mode> {
public:
  struct dimension {
    int input, axis;
    dim_spec size;
    extent symbol;
  };
  struct options {
    export_options const& of;
    std::vector<tensor_dims> const& sizes;
    std::vector<range_constraint>& constraints;
    draft_report* found = nullptr; // report of a draft; null: problems throw
  };
  using on_fake_values<Mode>::host, on_fake_values<Mode>::literal;
  static constexpr bool apart = true;
  explicit on_exported_values(options const& how, value_follower* follower = nullptr)
      : on_fake_values<Mode>(fake_mode_options{.environment = this, .follower = follower}), how_(how),
        before_(std::exchange(at_work, this)),
        watched_(std::exchange(watches_reads, static_cast<read_watcher*>(this))) {}
  ~on_exported_values() {
    watches_reads = watched_;
    at_work = before_;
  }

  template <class T>
  static T value(T const& t) {
    if (is_fake(t)) return t;
    on_exported_values& on = *at_work;
    auto const k = static_cast<std::size_t>(on.inputs_++);
    dims sizes = t.sizes();
    if (k < on.how_.sizes.size())
      for (int d = 0; d < sizes.n; ++d) sizes[d] = on.size(static_cast<int>(k), d, sizes[d]);
    return on_fake_values<Mode>::mode_at_work()->from_tensor_of_sizes(t, sizes);
  }
  template <class T>
  static T twin(T const& t) {
    return on_fake_values<Mode>::twin(t);
  }
  template <class G>
  void finish(G& g) const {
    require_kept();
    own_sizes(g, *this);
    for (dimension const& d : dimensions_)
      if (!known_as(d.symbol).is_number() && d.size.is != dim_spec::kind::fixed) {
        dim_spec s = d.size;
        if (s.is != dim_spec::kind::named) s.name = text(known_as(d.symbol));
        if (s.is != dim_spec::kind::named || !s.is_derived())
          s.least = range(d.symbol).least, s.greatest = range(d.symbol).greatest;
        how_.constraints.push_back({d.input, d.axis, s});
      }
  }

protected:
  static on_exported_values& here() { return *at_work; }
  draft_report& found() const { return *how_.found; }

private:
  /// Throws if C++ reads a number of the state, which may differ in each call.
  void require_no_state(tensor const& t) const {
    if (!t.has_data() || t.is_number()) return;
    for (module_state const& s : how_.of.state)
      if (s.at->has_data() && s.is != module_state::kind::attribute && t.shares_storage(*s.at))
        refuse::with<data_dependent_error>(
            ("varve: export: C++ reads " + s.name +
             " of the state, of which the program would keep the number that it "
             "has now; use operators, or read a clone(...) of it, which draft_export takes")
                .c_str());
  }
  void number(tensor const& t) override {
    require_no_state(t);
    if (watched_) watched_->number(t);
  }
  void memory(tensor const& t, memory_reader const& by) override {
    require_no_state(t);
    if (watched_) watched_->memory(t, by);
  }
  std::string name_of_input(int k) const {
    auto const& names = how_.of.names;
    return k < static_cast<int>(names.size()) ? names[static_cast<std::size_t>(k)] : "x" + std::to_string(k);
  }
  [[noreturn]] static void refuse(std::string const& what) {
    refuse::with<value_error>(("varve: export: " + what).c_str());
  }
  std::string place(int input, int axis) const { return name_of_input(input) + ".size(" + std::to_string(axis) + ")"; }

  extent size(int input, int axis, index_t n) {
    tensor_dims const& all = how_.sizes[static_cast<std::size_t>(input)];
    if (static_cast<std::size_t>(axis) >= all.size()) return n;
    dim_spec const& d = all[static_cast<std::size_t>(axis)];
    if (d.is == dim_spec::kind::fixed) return n;
    extent e = n;
    if (d.is == dim_spec::kind::automatic || d.is == dim_spec::kind::dynamic) {
      e = shape_environment::size(n, {input, axis}, false);
      if (d.is == dim_spec::kind::dynamic && e.is_number())
        refuse(place(input, axis) + " is " + std::to_string(n) +
               " in the example, for which a program is another one; give an example of at least 2");
    } else {
      e = named_size(d, input, axis, n);
    }
    dimensions_.push_back({input, axis, d, e});
    return e;
  }
  extent named_size(dim_spec const& d, int input, int axis, index_t n) {
    index_t const root = (n - d.plus) / d.times;
    if (root * d.times + d.plus != n)
      refuse("expected input " + place(input, axis) + " of the form " + d.text() + ", found " + std::to_string(n));
    if (root < d.least || root > d.greatest)
      refuse("the example has " + d.name + " = " + std::to_string(root) + " in " + place(input, axis) +
             ", which is not in range [" + std::to_string(d.least) + ", " +
             (d.greatest == size_range::unlimited ? "unlimited" : std::to_string(d.greatest)) + "]");
    if (root < 2)
      refuse("the example has " + d.name + " = " + std::to_string(root) + " in " + place(input, axis) +
             ", for which a program is another one; give an example of at least 2");
    for (auto const& known : names_)
      if (known.first.name == d.name) {
        if (known.first.least != d.least || known.first.greatest != d.greatest)
          refuse("the size " + d.name + " has different definitions: one from " + std::to_string(known.first.least) +
                 ", another from " + std::to_string(d.least) + "; use one dynamic_dim for both");
        if (hint(known.second) != root)
          refuse("expected input " + place(input, axis) + " to be " + d.text() + " = " +
                 std::to_string(hint(known.second) * d.times + d.plus) + ", found " + std::to_string(n));
        return d.times * known.second + d.plus;
      }
    std::string const own = d.name.size() <= 7 ? d.name : "d" + std::to_string(names_.size());
    extent const s = named(own, root, {d.least, d.greatest}, {input, axis});
    names_.push_back({d, s});
    return d.times * s + d.plus;
  }
  /// Returns the reason why a size became a number.
  std::string why_number(extent symbol) const {
    shape_guard const* const g = made_number(symbol);
    if (!g) return "";
    if (g->op) return std::string(" (since ") + g->op + " asks for it)";
    return " (since the function takes it for a number, as `index_t n = x.size(0)` does; keep it a size: `auto n`)";
  }
  /// Throws, or reports in a draft, if the program restricts a size that was declared as free.
  void require_kept() const {
    std::string why, fixes;
    for (auto const& [d, symbol] : names_) {
      extent const now = known_as(symbol);
      if (now.is_number()) {
        why += "; " + d.name + " must be " + std::to_string(now.number()) + why_number(symbol);
        fixes += "; " + d.name + " = " + std::to_string(now.number());
      } else if (!known_equal(now, symbol)) {
        why += "; " + d.name + " is " + text(now);
        fixes += "; " + relation(d, symbol, now);
      } else {
        for (std::string const& must : equalities_of(symbol))
          if (why.find(must) == std::string::npos)
            why += "; " + must + " must hold", fixes += "; dim_auto, which is checked in each run, or numbers";
        size_range const r = range(symbol);
        index_t const least = d.least < 2 ? 2 : d.least;
        if (r.least > least || r.greatest < d.greatest) {
          auto const ends =
              std::to_string(r.least) + (r.greatest == size_range::unlimited ? "" : ", " + std::to_string(r.greatest));
          why += "; not all numbers in the range of " + d.name + " will do";
          fixes += "; dynamic_dim(\"" + d.name + "\", " + ends + ")";
        }
      }
    }
    for (dimension const& d : dimensions_)
      if (d.size.is == dim_spec::kind::dynamic && known_as(d.symbol).is_number())
        why += "; " + place(d.input, d.axis) + " must be " + std::to_string(known_as(d.symbol).number()) +
               why_number(d.symbol),
            fixes += "; dim_static or dim_auto for it";
    if (why.empty()) return require_told();
    std::string const what =
        "constraints violated: " + why.substr(2) + (fixes.empty() ? "" : ". Suggested fixes: " + fixes.substr(2));
    if (!how_.found) refuse(what);
    how_.found->add({draft_finding::kind::constraint_violated, what, "the program has the sizes that it needs"});
  }
  /// Throws if a named size occurs in derived sizes only, from which a call cannot determine it.
  void require_told() const {
    for (auto const& known : names_) {
      dim_spec const& n = known.first;
      bool told = false;
      std::string as;
      for (dimension const& d : dimensions_)
        if (d.size.is == dim_spec::kind::named && d.size.name == n.name)
          told = told || !d.size.is_derived(), as = d.size.text();
      if (!told)
        refuse("the size " + n.name + " is in the arguments as " + as +
               " alone, which does not tell it to a program; name that size itself: what the program needs of it is "
               "checked in each run");
    }
  }
  /// Returns the equation between a named size and another: the one named later in terms of the first.
  std::string relation(dim_spec const& d, extent symbol, extent now) const {
    for (auto const& [other, s] : names_) {
      if (known_equal(s, symbol) || !known_equal(known_as(s), s)) continue;
      if (known_equal(now, s)) return later(d, symbol, other, s);
      extent const apart = now - s;
      if (apart.is_number()) { // d = other + k, other = d - k
        index_t const k = apart.number();
        bool const first = index(symbol) < index(s);
        std::string const &a = first ? other.name : d.name, &b = first ? d.name : other.name;
        index_t const plus = first ? -k : k;
        return a + " = " + b + (plus < 0 ? " - " : " + ") + std::to_string(plus < 0 ? -plus : plus);
      }
    }
    return d.name + " = " + text(now);
  }
  std::string later(dim_spec const& a, extent sa, dim_spec const& b, extent sb) const {
    return index(sa) < index(sb) ? b.name + " = " + a.name : a.name + " = " + b.name;
  }
  std::size_t index(extent s) const {
    std::size_t k = 0;
    while (!known_equal(names_[k].second, s)) ++k;
    return k;
  }

  static inline thread_local on_exported_values* at_work = nullptr;
  options how_;
  on_exported_values* before_;
  read_watcher* watched_;
  int inputs_ = 0;
  std::vector<dimension> dimensions_{};
  std::vector<std::pair<dim_spec, extent>> names_{};
};

/// Returns the size specifications for each argument tensor.
inline std::vector<tensor_dims> sizes_of_arguments(export_options const& o, boxed_args const& in) {
  auto const refuse = [](std::string const& what) {
    refuse::with<value_error>(("varve: export: dynamic_shapes: " + what).c_str());
  };
  std::vector<tensor_dims> r(static_cast<std::size_t>(in.size()));
  if (o.dynamic_shapes.size() > r.size())
    refuse("there are " + std::to_string(o.dynamic_shapes.size()) + " entries for " + std::to_string(in.size()) +
           " argument tensors");
  for (std::size_t k = 0; k < o.dynamic_shapes.size(); ++k) r[k] = o.dynamic_shapes[k];
  for (auto const& e : o.shapes.entries()) {
    bool found = false;
    for (int k = 0; k < in.size(); ++k)
      if (in[k].is(e.of)) found = true, r[static_cast<std::size_t>(k)] = e.sizes;
    if (!found) refuse("a tensor of shape " + to_string(e.of.sizes()) + " in the collection is no argument");
  }
  for (std::size_t k = 0; k < r.size(); ++k)
    if (!r[k].empty() && static_cast<int>(r[k].size()) != in[static_cast<int>(k)].dim())
      refuse((k < o.names.size() ? o.names[k] : "x" + std::to_string(k)) + " has " +
             std::to_string(in[static_cast<int>(k)].dim()) + " sizes, and " + std::to_string(r[k].size()) +
             " are specified");
  return r;
}

/// Returns a graph with its arguments and results in another order.
template <class G>
G reordered(G g, std::vector<int> const& inputs, std::vector<int> const& results) {
  G const old = g;
  int const first = old.regions[0].node_first;
  for (std::size_t k = 0; k < inputs.size(); ++k) // the new input k is the old inputs[k]
    for (int n = first; n < first + old.regions[0].inputs; ++n)
      if (static_cast<int>(old.nodes[n].value) == inputs[k])
        g.nodes[first + static_cast<int>(k)] = old.nodes[n],
                        g.nodes[first + static_cast<int>(k)].value = static_cast<double>(k);
  list<int> now(old.nodes.size(), 0);
  for (std::size_t n = 0; n < old.nodes.size(); ++n) now[n] = static_cast<int>(n);
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (int n = first; n < first + old.regions[0].inputs; ++n)
      if (static_cast<int>(old.nodes[n].value) == inputs[k]) now[n] = first + static_cast<int>(k);
  for (int& e : g.edges) e = now[e];
  for (int& r : g.results) r = now[r];
  list<int> own;
  for (int k : results) own.push_back(g.results[old.regions[0].result_first + k]);
  for (std::size_t k = 0; k < results.size(); ++k)
    g.results[old.regions[0].result_first + static_cast<int>(k)] = own[k];
  return g;
}
/// Makes the exported program of a call.
template <class T>
class program_exporter {
public:
  explicit program_exporter(export_options const& o) : how(o) {}

  /// Exports on fakes of the given kind. With `found`, problems are reported instead of thrown.
  template <class Fakes>
  exported_program made(boxed_call const& call, draft_report* found) const {
    exported_program r;
    std::vector<tensor_dims> const sizes = sizes_of_arguments(how, call.arguments);
    aot_state state;
    state.differentiated = false;
    state.results_are_values = true;
    for (auto const& s : how.state) {
      if (s.is == module_state::kind::buffer) state.writable.push_back(*s.at);
      if (s.is != module_state::kind::attribute) state.lifted.push_back(*s.at);
      state.handles.push_back(s.at);
    }
    auto const exported = [&](boxed_args const& in) {
      struct scope { // a scope in which nothing may be detached in place
        bool before = std::exchange(exports, true);
        ~scope() { exports = before; }
      } const here;
      return call(in);
    };
    joint_graph const g =
        trace_ahead_of_time<Fakes>(exported, call.arguments, {how, sizes, r.constraints, found}, state);
    require_no_attributes(g);
    require_own_memory(g);
    for (std::size_t k = 0; k < g.inputs.size(); ++k)
      if (g.inputs[k].reshaped || g.inputs[k].set_to_input >= 0 || g.inputs[k].set_to_result >= 0)
        refuse::with<value_error>(("varve: export: " + name_of(static_cast<int>(k)) +
                                   " is given another shape or other memory: metadata mutation of an input")
                                      .c_str());
    write_signature(r, g);
    return r;
  }

private:
  using in_kind = input_spec::kind;
  using out_kind = output_spec::kind;
  void require_no_attributes(joint_graph const& g) const {
    std::string names;
    for (int k : g.reassigned)
      if (auto const& s = how.state[static_cast<std::size_t>(k)]; s.is != module_state::kind::buffer)
        names += (names.empty() ? "" : ", ") + s.name;
    if (!names.empty())
      refuse::with<value_error>(
          ("varve: export: the function assigns to " + names + ", which no program keeps; register it as a buffer")
              .c_str());
  }
  /// Throws if state that is written shares elements with other state, because the graph treats them as separate.
  void require_own_memory(joint_graph const& g) const {
    std::vector<tensor> written;
    for (int k : g.written_captures) written.push_back(g.captured[k]);
    for (int k : g.reassigned) written.push_back(*how.state[static_cast<std::size_t>(k)].at);
    for (tensor const& t : written)
      for (int k = 0; k < g.captured.size(); ++k)
        if (!g.captured[k].is(t) && share_elements(g.captured[k], t)) {
          auto const name = [&](tensor const& of) { return state_of(of) ? state_of(of)->name : "a captured tensor"; };
          refuse::with<value_error>(("varve: export: " + name(t) + " is written into and shares memory with " +
                                     name(g.captured[k]) + "; make the view in the function")
                                        .c_str());
        }
  }
  std::string name_of(int argument) const {
    return argument < static_cast<int>(how.names.size()) ? how.names[static_cast<std::size_t>(argument)]
                                                         : "x" + std::to_string(argument);
  }
  /// Throws if the names of the results are not as many as the results, or not distinct from each other and from the
  /// names of the inputs. A file and an ONNX model know values by their names.
  void require_names_of_results(exported_program const& r, std::size_t results) const {
    if (how.results.empty()) return;
    if (how.results.size() != results)
      refuse::with<value_error>(("varve: export: results: there are " + std::to_string(how.results.size()) +
                                 " names for " + std::to_string(results) + " results")
                                    .c_str());
    std::vector<std::string> taken;
    for (input_spec const& i : r.signature.inputs) taken.push_back(i.name);
    for (std::string const& name : how.results) {
      if (name.empty() || std::find(taken.begin(), taken.end(), name) != taken.end())
        refuse::with<value_error>(
            ("varve: export: results: the name \"" + name + "\" is empty, or that of another value").c_str());
      taken.push_back(name);
    }
  }
  module_state const* state_of(tensor const& t) const {
    for (auto const& s : how.state)
      if (s.at->is(t)) return &s;
    return nullptr;
  }
  /// Writes the signature. Inputs: parameters, buffers, constants, user inputs. Results: written values, user outputs.
  void write_signature(exported_program& r, joint_graph const& g) const {
    int const arguments = static_cast<int>(g.inputs.size());
    std::vector<int> inputs, place(static_cast<std::size_t>(g.captured.size()), -1);
    int constants = 0;
    auto const take = [&](in_kind is) {
      for (int k = 0; k < g.captured.size(); ++k) {
        module_state const* const s = state_of(g.captured[k]);
        in_kind const mine = !s                                       ? in_kind::constant
                             : s->is == module_state::kind::parameter ? in_kind::parameter
                             : s->is == module_state::kind::buffer    ? in_kind::buffer
                                                                      : in_kind::constant;
        if (mine != is) continue;
        place[static_cast<std::size_t>(k)] = static_cast<int>(inputs.size());
        inputs.push_back(arguments + k);
        r.signature.inputs.push_back({is, s ? s->name : "constant_" + std::to_string(constants++)});
        r.state.push_back(g.captured[k]);
      }
    };
    take(in_kind::parameter), take(in_kind::buffer), take(in_kind::constant);
    int const first_user = static_cast<int>(r.signature.inputs.size());
    for (int k = 0; k < arguments; ++k) {
      inputs.push_back(k);
      r.signature.inputs.push_back({in_kind::user_input, name_of(k)});
    }
    std::vector<int> results;
    int written = 0;
    for (auto const& i : g.inputs) written += i.is_written;
    int const captures_first = written, reassigned_first = written + static_cast<int>(g.written_captures.size());
    for (std::size_t k = 0; k < g.written_captures.size(); ++k) {
      int const at = place[static_cast<std::size_t>(g.written_captures[k])];
      r.signature.outputs.push_back(
          {out_kind::buffer_mutation, r.signature.inputs[static_cast<std::size_t>(at)].name, at});
      results.push_back(captures_first + static_cast<int>(k));
    }
    for (std::size_t k = 0; k < g.reassigned.size(); ++k) {
      std::string const& name = how.state[static_cast<std::size_t>(g.reassigned[k])].name;
      int at = 0;
      while (r.signature.inputs[static_cast<std::size_t>(at)].name != name) ++at;
      meta const was = meta_of(r.state[static_cast<std::size_t>(at)]);
      meta const& now = g.joint.nodes[g.joint.results[reassigned_first + static_cast<int>(k)]].out;
      if (now.type != was.type || !(now.sizes == was.sizes))
        refuse::with<value_error>(("varve: export: the function assigns to buffer " + name +
                                   " a tensor of another shape or "
                                   "dtype, which the program, that writes into it, cannot; make it so before")
                                      .c_str());
      r.signature.outputs.push_back({out_kind::buffer_mutation, name, at});
      results.push_back(reassigned_first + static_cast<int>(k));
    }
    int next = 0;
    for (int k = 0; k < arguments; ++k)
      if (g.inputs[static_cast<std::size_t>(k)].is_written) {
        r.signature.outputs.push_back({out_kind::user_input_mutation, name_of(k), first_user + k});
        results.push_back(next++);
      }
    require_names_of_results(r, g.outputs.size());
    for (std::size_t k = 0; k < g.outputs.size(); ++k) {
      if (g.outputs[k].what == aot_output::kind::absent)
        refuse::with<value_error>(
            ("varve: export: result " + std::to_string(k) + " is undefined; return tensors").c_str());
      r.signature.outputs.push_back(
          {out_kind::user_output, how.results.empty() ? "output_" + std::to_string(k) : how.results[k]});
      results.push_back(g.outputs[k].from);
    }
    graph const whole = optimize(g.joint);
    graph const ordered = reordered(whole, inputs, results);
    r.graph = with_effect_tokens(ordered);
    if (count_effects(ordered) == 0) return;
    r.signature.inputs.insert(r.signature.inputs.begin(), {in_kind::token, "token"});
    for (output_spec& o : r.signature.outputs)
      if (o.input >= 0) ++o.input;
    r.signature.outputs.insert(r.signature.outputs.begin(), {out_kind::token, "token"});
  }

  export_options const& how;
};
template <class T>
exported_program export_call(boxed_call const& call, export_options const& how) {
  return program_exporter<T>(how).template made<on_exported_values<dependent<fake_mode, T>>>(call, nullptr);
}
#if VARVE_COMPILED // for the library
template exported_program export_call<tensor>(boxed_call const&, export_options const&);
#endif
} // namespace detail
#endif

} // namespace varve

#pragma GCC diagnostic pop
