// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/aot/partition.hpp>
#include <varve/autograd/backward.hpp>
#include <varve/autograd/saved_tensors_hooks.hpp>
#include <varve/compile/versions.hpp>
#include <varve/fake/make_fx.hpp>
#include <varve/functional/functional_mode.hpp>
#include <varve/hop/with_effects.hpp>

#include <utility>

/// @file
/// A function of tensors and its gradient as one graph without writes. Facts that the graph does not express are stored
/// beside it: which arguments the function wrote, and which results share the memory of an argument or of each other.
namespace varve {

/// The effects of a function on one of its arguments.
struct aot_input {
  bool requires_grad = false, is_leaf = true;
  /// True if the argument is written; its new value is a result of the graph.
  bool is_written = false;
  /// True if autograd did not see the writes: they were made in `no_grad` mode or through `detach`.
  bool is_written_unseen = false;
  /// True if the version counter does not count the writes: all go through `data()`, in the forward or in the backward
  /// pass.
  bool is_written_hidden = false, is_written_backward_hidden = false;
  /// The views that lead to what the argument shows after the call, if its shape is changed in place (`transpose_`).
  detail::view_chain reshaped{};
  /// After the call the argument is a view, through `set_views`, of another argument or of a result of the graph
  /// (`set_`). These are their indices, or -1.
  int set_to_input = -1, set_to_result = -1;
  detail::view_chain set_views{};
  /// True if a backward pass writes the argument; its new value then follows the gradients.
  bool is_written_backward = false;
};
/// The origin of a result of the function.
struct aot_output {
  enum class kind : unsigned char {
    absent,        // undefined
    value,         // memory of its own: result `from` of the graph
    input,         // argument `from` itself
    view_of_input, // a view of argument `from`
    view_of_value, // a view of result `from`, of which other results are views too
  };
  kind what = kind::absent;
  int from = 0;
  detail::view_chain views{}; // from that memory to the result
  bool requires_grad = false;
  detail::view_origin origin = detail::view_origin::usual;
};

/// A traced function. The graph's arguments are those of the function, the tensors that it captures (`captured`), and a
/// tangent for each of the `tangents` results. Its results, in this order: the new values of written arguments; the
/// values that `outputs` refers to; the gradients of the arguments in `differentiated`; the values of arguments that
/// the backward pass wrote.
struct joint_graph {
  graph joint;
  joint_shape shape;
  std::vector<aot_input> inputs{};
  std::vector<aot_output> outputs{};
  boxed_args captured{};
  std::vector<int> written_captures{}; // new values are results after those of arguments
  std::vector<int> reassigned{};       // indices in `aot_state::handles`; their new values come next
  std::vector<int> tangents{};         // indices of results that have a tangent
  std::vector<int> differentiated{};   // indices of arguments that have a gradient
  int forward_effects = 0;             // number of effects of the forward pass
  /// True if there is a gradient to compute.
  bool has_backward() const { return !tangents.empty(); }
};

/// State that a traced function may change: tensors that it captures and writes, and variables to which it assigns
/// other tensors. The variables are restored after the trace.
struct aot_state {
  std::vector<tensor> writable{};
  std::vector<tensor*> handles{};
  /// Tensors that are captured, used or not, in this order.
  std::vector<tensor> lifted{};
  /// True if all results are values of the graph, also arguments and views.
  bool results_are_values = false;
  /// True if gradients are computed for arguments that require one.
  bool differentiated = true;
};

namespace detail {
/// Traces a function and its gradient for the given tensors. `On` chooses how these become fake tensors.
template <class On>
joint_graph trace_ahead_of_time(boxed_function_ref f, boxed_args const& x, typename On::options const& how = {},
                                aot_state const& state = {});
} // namespace detail

#if VARVE_DEFINES_CAPTURE
namespace detail {
/// A run of a function on functional fake tensors under a tracer, with eager autograd above.
template <class T = tensor>
struct ahead_of_time final : functional_captures, leaves_of_program {
  joint_graph& to;
  trace_layer& tracer;
  functional_mode mode;
  std::vector<T> given{}, leaves{}, captures{};
  std::vector<std::shared_ptr<functional_memory<T>>> memories{}; // memory of `given` before the call
  std::vector<edge> histories{};
  std::vector<T> results{};           // results of the graph: functional tensors
  std::vector<int> tangent_numbers{}; // as arguments of the graph while it is built
  aot_state const& state;
  std::vector<T> handles{}; // values before the call

  ahead_of_time(joint_graph& t, aot_state const& st)
      : to(t), tracer(*static_cast<trace_layer*>(trace_layer::mode_at_work()->object)), state(st) {
    for (tensor const* h : state.handles) handles.push_back(*h);
    mode.run_->derived_above = state.differentiated;
    mode.run_->exported = !state.differentiated;
    mode.captures_ = this;
    records_captures = true;
    program_leaves = this;
  }

  ahead_of_time(ahead_of_time const&) = delete;
  ahead_of_time& operator=(ahead_of_time const&) = delete;
  ~ahead_of_time() {
    records_captures = recorded_before_;
    program_leaves = leaves_before_;
    for (std::size_t k = 0; k < handles.size(); ++k) *state.handles[k] = handles[k];
  }

  /// Makes the graph's arguments functional, each in memory of its own. Gradients end at them.
  void take(boxed_args const& arguments) {
    for (int k = 0; k < arguments.size(); ++k) {
      T v = arguments[k];
      arguments_.push_back(v);
      bool const needs = v.has_history();
      to.inputs.push_back({needs, v.is_leaf()});
      bool shares = false;
      for (int j = 0; j < k; ++j) shares = shares || arguments[j].shares_storage(v);
      if (shares) v = tracer.in_own_memory(v);
      T const in = mode.to_functional_tensor(needs ? T(v.alias()) : v);
      leaves.push_back(T());
      if (needs && to.inputs.back().is_leaf) {
        leaves.back() = in.requires_grad_();
      } else if (needs) {
        leaves.back() = T::meta(v.sizes(), v.dtype());
        leaves.back().requires_grad_();
        auto through = [](boxed_args const& g, bool const*) { return g; };
        in.set_history(edge_to(record_function(through, {eager_history(leaves.back())}, 1, "Argument")));
      }
      given.push_back(in);
      versions_.push_back(in.version());
      memories.push_back(memory_of(in));
      histories.push_back(needs ? eager_history(in) : edge());
    }
  }
  tensor stand_in(tensor const& captured) override {
    for (auto const& [of, handle] : follows_.handles)
      if (handle.is(captured)) return stand_in(of);
    for (std::size_t k = 0; k < captures.size(); ++k)
      if (to.captured[static_cast<int>(k)].is(captured)) return captures[k];
    if (captured.has_history() && !captured.is_leaf())
      refuse::with<autograd_error>(
          "varve: aot: the function captures a tensor that was computed from others with a gradient; "
          "pass it as an argument");
    T v = tracer.captured_value(captured);
    bool shares = false;
    for (tensor const& t : arguments_) shares = shares || t.shares_storage(v);
    if (shares) v = tracer.in_own_memory(v);
    T const r = mode.to_functional_tensor(v.has_history() ? T(v.alias()) : v);
    bool writable = false;
    for (tensor const& t : state.writable) writable = writable || t.is(captured);
    functional_object<T>::of(r).memory->captured = !writable;
    functional_object<T>::of(r).memory->underived = !captured.has_history();
    to.captured.push_back(captured);
    captures.push_back(r);
    return r;
  }

  /// Processes what the function returned.
  void took(boxed_args const& y) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      aot_input& in = to.inputs[k];
      if (in.requires_grad ? !given[k].has_history() : given[k].has_history() && given[k].is_leaf())
        refuse::with<autograd_error>("varve: aot: the function changes whether an argument requires a gradient "
                                     "(requires_grad_), which the program would not; do so before the call");
      in.is_written = memories[k]->generation > 0;
      if (memory_of(given[k]) != memories[k]) {
        if (in.is_written || (in.requires_grad && !(eager_history(given[k]) == histories[k])))
          refuse::with<autograd_error>(
              "varve: aot: an argument was given other memory (set_), and is written into too, which "
              "cannot be replayed; write into a clone");
        continue;
      }
      in.reshaped = functional_object<T>::of(given[k]).at;
      if (!in.is_written) continue;
      in.is_written_hidden = given[k].version() == versions_[k];
      in.is_written_unseen = !in.requires_grad ? !given[k].has_history() : eager_history(given[k]) == histories[k];
      results.push_back(given[k]);
    }
    for (std::size_t k = 0; k < given.size(); ++k)
      if (memory_of(given[k]) != memories[k]) take_set(to.inputs[k], given[k]);
    for (std::size_t k = 0; k < captures.size(); ++k)
      if (mutations_of(captures[k]).any()) {
        to.written_captures.push_back(static_cast<int>(k));
        results.push_back(captures[k]);
      }
    for (std::size_t k = 0; k < handles.size(); ++k)
      if (tensor& now = *state.handles[k]; !now.is(handles[k])) {
        to.reassigned.push_back(static_cast<int>(k));
        results.push_back(now);
        now = handles[k];
      }
    for (int k = 0; k < y.size(); ++k) to.outputs.push_back(output(y, k));
  }
  /// Computes the gradients, with tangents that are further arguments.
  void differentiate() {
    std::vector<autograd::target> roots, wanted;
    std::vector<int> of;
    for (std::size_t k = 0; k < results.size(); ++k) {
      bool const unseen = k < written_count() && to.inputs[written(k)].is_written_unseen;
      if (results[k].defined() && results[k].has_history() && !unseen) to.tangents.push_back(static_cast<int>(k));
    }
    if (to.tangents.empty() || !state.differentiated) return to.tangents.clear();
    for (std::size_t k = 0; k < leaves.size(); ++k)
      if (leaves[k].defined()) wanted.push_back(leaves[k]), of.push_back(static_cast<int>(k));
    std::vector<T> tangents;
    for (int k : to.tangents) {
      T const& y = results[static_cast<std::size_t>(k)];
      roots.push_back(y);
      T const t = tracer.input(functional_object<T>::of(y).current());
      tangent_numbers.push_back(static_cast<int>(tracer.builder.written(tracer.node_of(t)).value));
      tangents.push_back(mode.to_functional_tensor(t.has_history() ? T(t.alias()) : t));
    }
    for (int k = 0; k < to.captured.size(); ++k)
      if (to.captured[k].has_history())
        wanted.push_back(T(to.captured[k])), of.push_back(static_cast<int>(leaves.size()) + k);
    std::vector<std::uint64_t> const before = writes_of(given);
    for (std::size_t k = 0; k < given.size(); ++k) versions_[k] = given[k].version();
    in_backward_ = true;
    auto const g = autograd::grad<T>(roots, wanted, tangents, {}, autograd::unused::undefined);
    for (T const& t : tangents)
      if (mutations_of(t).any())
        refuse::with<autograd_error>(
            "varve: aot: the backward of a custom function writes into the gradient that it is given; "
            "clone it there");
    for (std::size_t k = 0; k < g.size(); ++k)
      if (g[k].defined()) {
        to.differentiated.push_back(of[k]);
        results.push_back(g[k]);
      }
    std::vector<std::uint64_t> const after = writes_of(given);
    for (std::size_t k = 0; k < given.size(); ++k)
      if (after[k] != before[k]) {
        to.inputs[k].is_written_backward = true;
        to.inputs[k].is_written_backward_hidden = given[k].version() == versions_[k];
        results.push_back(given[k]);
      }
  }
  /// Returns the traced values of all results of the graph.
  boxed_args values() const {
    boxed_args r;
    for (T const& t : results) r.push_back(value_of(t));
    return r;
  }

private:
  /// An observer of further handles of captured tensors, which operators with functions use as operands.
  struct follows_handles : rename_watcher {
    follows_handles()
        : rename_watcher{[](rename_watcher& w, char const* op, tensor const& x) {
                           if (auto* const b = told(w)) b->renaming(*b, op, x);
                         },
                         [](rename_watcher& w, tensor const& x, tensor const& y) {
                           if (auto* const b = told(w)) b->renamed(*b, x, y);
                         },
                         [](rename_watcher& w, tensor const& x, tensor const& y) {
                           if (auto* const b = told(w)) b->read(*b, x, y);
                         },
                         [](rename_watcher& w, tensor const& x, tensor const& y) {
                           if (auto* const b = told(w)) b->shared(*b, x, y);
                           if (!x.object() && !x.is_wrapped() && x.has_data())
                             static_cast<follows_handles&>(w).handles.push_back({x, y});
                         },
                         watches_renames ? watches_renames->detach : nullptr},
          before(std::exchange(watches_renames, this)) {}
    follows_handles(follows_handles const&) = delete;
    follows_handles& operator=(follows_handles const&) = delete;
    ~follows_handles() { watches_renames = before; }
    static rename_watcher* told(rename_watcher& w) { return static_cast<follows_handles&>(w).before; }
    rename_watcher* before;
    std::vector<std::pair<T, T>> handles{}; // a tensor and another handle of it
  };
  follows_handles follows_{};
  boxed_args arguments_{};                // values of the trace, some in one memory
  std::vector<std::uint32_t> versions_{}; // of `given`, before each pass
  bool recorded_before_ = records_captures, in_backward_ = false;
  leaves_of_program const* leaves_before_ = program_leaves;
  bool leaves_hooks(grad_node const& leaf) const override {
    bool captured = false;
    for (int k = 0; in_backward_ && k < to.captured.size(); ++k)
      captured = captured || eager_history(to.captured[k]).to() == &leaf;
    return captured;
  }
  void adding(grad_node const& leaf) const override {
    bool known = false;
    for (T const& t : leaves) known = known || (t.defined() && eager_history(t).to() == &leaf);
    for (int k = 0; k < to.captured.size(); ++k) known = known || eager_history(to.captured[k]).to() == &leaf;
    if (known)
      refuse::with<autograd_error>(
          "varve: aot: the function adds to the gradient of an argument or of a tensor that it captures "
          "(backward), which the program would not; return the gradient (autograd::grad), or call "
          "backward outside");
  }
  static T value_of(T const& t) { return is_functional_tensor(t) ? functional_object<T>::of(t).current() : t; }
  static std::vector<std::uint64_t> writes_of(std::vector<T> const& of) {
    std::vector<std::uint64_t> r;
    for (T const& t : of) r.push_back(mutations_of(t).all);
    return r;
  }
  std::size_t written_count() const {
    std::size_t n = 0;
    for (aot_input const& in : to.inputs) n += in.is_written;
    return n;
  }
  /// Returns the index of the k-th argument that was written.
  std::size_t written(std::size_t k) const {
    std::size_t at = 0;
    while (!to.inputs[at].is_written || k-- > 0) ++at;
    return at;
  }
  static std::shared_ptr<functional_memory<T>> memory_of(T const& t) {
    return is_functional_tensor(t) ? functional_object<T>::of(t).memory : nullptr;
  }
  /// Notes where the new memory of an argument comes from (`set_`).
  void take_set(aot_input& in, T const& t) {
    in.set_views = functional_object<T>::of(t).at;
    for (std::size_t j = 0; j < memories.size(); ++j)
      if (memories[j] == memory_of(t)) in.set_to_input = static_cast<int>(j);
    if (in.set_to_input >= 0) return;
    in.set_views = nullptr; // the value itself
    in.set_to_result = result(t);
  }
  int result(T const& t) {
    results.push_back(t);
    return static_cast<int>(results.size()) - 1;
  }
  /// Returns the views that follow those that an argument itself became.
  static view_chain behind(view_chain const& all, view_chain const& own) {
    if (!own) return all;
    std::vector<view_step const*> steps;
    view_step const* s = all.get();
    for (; s && s != own.get(); s = s->before.get()) steps.push_back(s);
    if (!s)
      refuse::with<autograd_error>(
          "varve: aot: a result is a view of an argument as it was before its shape was changed in "
          "place; make the view after that, or clone it");
    view_chain r;
    for (std::size_t k = steps.size(); k-- > 0;) {
      view_step step = *steps[k];
      step.before = r;
      r = std::make_shared<view_step const>(step);
    }
    return r;
  }
  aot_output output(boxed_args const& y, int k) {
    using kind = aot_output::kind;
    T const t = y[k];
    if (!t.defined()) return {};
    aot_output r{kind::value, 0, {}, t.has_history(), t.origin()};
    if (state.results_are_values) return r.from = result(t.object() || !t.has_data() ? t : T(stand_in(t))), r;
    if (!t.object() && t.has_data()) stand_in(t); // captured, perhaps unused
    for (int c = 0; c < to.captured.size(); ++c)
      if (to.captured[c].is(t)) return r.what = kind::input, r.from = static_cast<int>(given.size()) + c, r;
    auto const m = memory_of(t);
    if (m) r.views = functional_object<T>::of(t).at;
    std::vector<T> all = given;
    all.insert(all.end(), captures.begin(), captures.end());
    for (std::size_t i = 0; m && i < all.size(); ++i)
      if (memory_of(all[i]) == m) {
        if (i < given.size() && !t.is(all[i])) r.views = behind(r.views, to.inputs[i].reshaped);
        r.what = t.is(all[i]) ? kind::input : kind::view_of_input, r.from = static_cast<int>(i);
        return r;
      }
    if (t.has_history() && t.is_leaf())
      refuse::with<autograd_error>(
          "varve: aot: a result was made a leaf in the function (requires_grad_), which that of a "
          "program would not be; do so after the call");
    if (edge const h = eager_history(t); h && h.to()->extra && h.to()->extra->retained_at(h.nr()))
      refuse::with<autograd_error>(
          "varve: aot: the function asks for the gradient of a result to be kept (retain_grad), which "
          "the program would not; do so after the call");
    T base = t;
    bool shared = false;
    for (int j = 0; m && j < y.size(); ++j) shared = shared || (j != k && memory_of(y[j]) == m);
    if (!shared) return r.from = result(t), r;
    for (auto const& [memory, at] : bases_)
      if (memory == m) return r.what = kind::view_of_value, r.from = at, r;
    if (r.views) base = t.base(); // the tensor that it is a view of for autograd
    if (!base.defined() || memory_of(base) != m || functional_object<T>::of(base).at)
      refuse::with<autograd_error>(
          "varve: aot: two results show one memory, which none of them shows as a whole with its "
          "gradient; clone one of them");
    r.what = kind::view_of_value, r.from = result(base);
    bases_.push_back({m, r.from});
    return r;
  }
  std::vector<std::pair<std::shared_ptr<functional_memory<T>>, int>> bases_{};
};

/// Reorders the graph's arguments: primals, then captured tensors, then tangents.
template <class G>
void put_tangents_last(G& g, std::vector<int> const& tangents) {
  auto const is_tangent = [&](int number) {
    for (int t : tangents)
      if (t == number) return true;
    return false;
  };
  list<int> now(static_cast<std::size_t>(g.regions[0].inputs), 0);
  int next = 0;
  for (bool last : {false, true})
    for (int k = 0; k < g.regions[0].inputs; ++k)
      if (is_tangent(k) == last) now[k] = next++;
  for (int n = 0; n < g.regions[0].inputs; ++n) g.nodes[n].value = now[static_cast<int>(g.nodes[n].value)];
}

template <class On>
joint_graph trace_ahead_of_time(boxed_function_ref f, boxed_args const& x, typename On::options const& how,
                                aot_state const& state) {
  joint_graph r;
  boxed_args captured;
  std::vector<int> tangents;
  auto const traced = [&](boxed_args const& in) -> boxed_args {
    ahead_of_time<dependent<tensor, On>> run(r, state);
    functional_mode_guard const on(run.mode);
    run.take(in);
    for (tensor const& t : state.lifted) run.stand_in(t);
    boxed_args given;
    for (tensor const& t : run.given) given.push_back(t);
    run.took(f(given));
    int const forward = static_cast<int>(run.results.size());
    graph const until_now = run.tracer.builder.finish();
    r.forward_effects = count_effects(until_now);
    run.differentiate();
    r.shape = {0, forward};
    tangents = run.tangent_numbers;
    return run.values();
  };
  disable_saved_tensors_hooks const of_the_call; // what the trace records is not saved
  r.joint = trace_boxed<On>(traced, x, how, capture_policy::by_function, &captured);
  put_tangents_last(r.joint, tangents);
  r.shape.primals = r.joint.regions[0].inputs - static_cast<int>(r.tangents.size());
  if (state.differentiated)
    for (node& n : r.joint.nodes) n.mode = recording::as_around;
  return r;
}
} // namespace detail
#endif

} // namespace varve
