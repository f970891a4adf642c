// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/aot/share_elements.hpp>
#include <varve/export/dynamic_shapes.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/graph/print.hpp>
#include <varve/hop/with_effects.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/in_place.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace varve {

/// A named tensor of a module, which an exported function captures.
struct module_state {
  enum class kind : unsigned char { parameter, buffer, attribute };
  std::string name;
  tensor* at;
  kind is;
};
/// Returns state that is trained and that the function does not write.
inline module_state parameter(std::string name, tensor& t) {
  return {std::move(name), &t, module_state::kind::parameter};
}
/// Returns state that the function may write or assign.
inline module_state buffer(std::string name, tensor& t) { return {std::move(name), &t, module_state::kind::buffer}; }
/// Returns state that is neither a parameter nor a buffer. Assignments to it are refused.
inline module_state attribute(std::string name, tensor& t) {
  return {std::move(name), &t, module_state::kind::attribute};
}

/// The meaning of an argument of an exported graph.
struct input_spec {
  enum class kind : unsigned char { parameter, buffer, constant, user_input, token };
  kind is;
  std::string name;
  /// True if the program was loaded from a file and this tensor of its state required a gradient when saved.
  bool requires_grad = false;
};
/// The meaning of a result of an exported graph.
struct output_spec {
  enum class kind : unsigned char { buffer_mutation, parameter_mutation, user_input_mutation, user_output, token };
  kind is;
  std::string name; // of the written input, or of the result (`output_k` unless the options name it)
  int input = -1;   // the written argument of the graph, or -1
};
/// The arguments and results of an exported graph. Arguments are parameters, buffers, constants, user inputs, in this
/// order; results are written values, then user outputs. In a program with effects the first argument and the first
/// result are a token (`with_effect_tokens`), which callers neither pass nor receive.
struct export_signature {
  std::vector<input_spec> inputs{};
  std::vector<output_spec> outputs{};
  int count(input_spec::kind k) const {
    int n = 0;
    for (auto const& i : inputs) n += i.is == k;
    return n;
  }
  int count(output_spec::kind k) const {
    int n = 0;
    for (auto const& o : outputs) n += o.is == k;
    return n;
  }
};
/// A size of a user input that may differ from call to call.
struct range_constraint {
  int input, axis; // among the user inputs
  dim_spec size;
};

/// A whole program, independent of the process that made it: a graph without writes, the tensors of its state, and
/// constraints on its arguments. See `export_program`.
class exported_program {
public:
  varve::graph graph;
  export_signature signature;
  /// Parameters, buffers and constants, in their order among the inputs.
  std::vector<tensor> state{};
  std::vector<range_constraint> constraints{};
  /// The reason why the program cannot be run (`draft_export`); empty if it can.
  std::string refused{};

  /// Runs the program on user inputs, which are tensors, and returns the user outputs. Checks the inputs by name
  /// (`shape_error`, `dtype_error`, `value_error`), computes, and writes into buffers and inputs what the function
  /// wrote.
  std::vector<tensor> operator()(std::vector<tensor> const& inputs) const { return run(inputs); }
  template <class... X>
    requires(std::is_same_v<X, tensor> && ...)
  std::vector<tensor> operator()(X const&... x) const {
    return run(std::vector<tensor>{x...});
  }
  /// Returns a tensor of the state by name. Throws `value_error` if there is none.
  tensor const& state_of(std::string const& name) const {
    for (std::size_t k = 0; k < state.size(); ++k)
      if (signature.inputs[tokens() + k].name == name) return state[k];
    refuse::with<value_error>(("varve: exported program: there is no state of the name " + name).c_str());
  }
  /// Returns the number of tokens before the state: 1 if the program has effects, else 0.
  std::size_t tokens() const { return static_cast<std::size_t>(signature.count(input_spec::kind::token)); }
  /// Returns the state in a form in which a function can be exported with it, stored in variables of the caller.
  std::vector<module_state> named_state(std::vector<tensor>& variables) const {
    using of = module_state::kind;
    std::vector<module_state> r;
    for (std::size_t k = 0; k < variables.size(); ++k) {
      input_spec const& in = signature.inputs[tokens() + k];
      auto const is = in.is;
      r.push_back({in.name, &variables[k],
                   is == input_spec::kind::parameter ? of::parameter
                   : is == input_spec::kind::buffer  ? of::buffer
                                                     : of::attribute});
    }
    return r;
  }
  std::vector<std::string> user_inputs() const {
    std::vector<std::string> r;
    for (auto const& i : signature.inputs)
      if (i.is == input_spec::kind::user_input) r.push_back(i.name);
    return r;
  }

  std::vector<std::string> user_outputs() const {
    std::vector<std::string> r;
    for (auto const& o : signature.outputs)
      if (o.is == output_spec::kind::user_output) r.push_back(o.name);
    return r;
  }

private:
  template <class T>
  std::vector<T> run(std::vector<T> const& inputs) const {
    if (!refused.empty()) refuse::with<value_error>(("varve: exported program: " + refused).c_str());
    check(inputs);
    boxed_args all;
    if (tokens()) all.push_back(detail::token());
    for (auto const& t : state) all.push_back(t);
    for (auto const& t : inputs) all.push_back(t);
    require_apart(all);
    boxed_args const y = interpret(graph, all);
    std::vector<T> now, r;
    for (int k = 0; k < y.size(); ++k)
      now.push_back(before_writes<T>(y[k], signature.outputs[static_cast<std::size_t>(k)], all));
    for (std::size_t k = 0; k < now.size(); ++k) {
      output_spec const& o = signature.outputs[k];
      if (o.is == output_spec::kind::user_output) r.push_back(now[k]);
      else if (o.input >= 0) copy_(static_cast<T const&>(all[o.input]), now[k]);
    }
    return r;
  }
  /// Returns a result, copied if it shares memory with another input that is about to be written.
  template <class T>
  T before_writes(T const& y, output_spec const& of, boxed_args const& all) const {
    for (output_spec const& o : signature.outputs)
      if (o.input >= 0 && o.input != of.input && y.shares_storage(all[o.input])) return clone(y);
    return y;
  }
  /// Throws if a written input shares elements with another input, because the graph treats them as separate.
  void require_apart(boxed_args const& all) const {
    int const first = static_cast<int>(tokens() + state.size());
    for (output_spec const& o : signature.outputs)
      for (int k = 0; k < all.size() && o.input >= 0; ++k)
        if (k != o.input && (k >= first || o.input >= first) && detail::share_elements(all[k], all[o.input]))
          refuse::with<value_error>(("varve: exported program: " + o.name + " is written into and shares memory with " +
                                     signature.inputs[static_cast<std::size_t>(k)].name + "; clone one of them")
                                        .c_str());
  }
  template <class T>
  void check(std::vector<T> const& inputs) const;
};

/// Prints the signature, the sizes that may vary, and the graph.
inline std::ostream& operator<<(std::ostream& os, exported_program const& p) {
  constexpr char const* in[] = {"parameter", "buffer", "constant", "user input", "token"};
  constexpr char const* out[] = {"buffer mutation", "parameter mutation", "user input mutation", "user output",
                                 "token"};
  for (auto const& i : p.signature.inputs) os << "input " << i.name << ": " << in[static_cast<int>(i.is)] << "\n";
  for (auto const& o : p.signature.outputs) os << "output " << o.name << ": " << out[static_cast<int>(o.is)] << "\n";
  auto const names = p.user_inputs();
  for (auto const& c : p.constraints) {
    std::string const least = std::to_string(c.size.least), greatest = std::to_string(c.size.greatest);
    os << names[static_cast<std::size_t>(c.input)] << ".size(" << std::to_string(c.axis) << "): " << c.size.text();
    os << ", " << least << " <= " << c.size.name;
    os << (c.size.greatest == size_range::unlimited ? "" : " <= " + greatest) << "\n";
  }
  return os << p.graph;
}

/// Returns the program without its token, which then begins and ends inside the graph. A program without effects is
/// returned unchanged.
template <class P>
  requires std::is_same_v<P, exported_program>
P unlift_effect_tokens(P p) {
  if (!p.tokens()) return p;
  p.graph = unlift_effect_tokens(p.graph);
  p.signature.inputs.erase(p.signature.inputs.begin());
  p.signature.outputs.erase(p.signature.outputs.begin());
  for (output_spec& o : p.signature.outputs)
    if (o.input >= 0) --o.input;
  return p;
}

namespace detail {
/// Returns a size as text, also if it is a symbol of a trace that contains the call.
inline std::string text_of_size(extent n) {
  shape_recorder const* const of = n.is_number() ? nullptr : shape_recorder::find(n.environment());
  return of ? of->text(n) : std::to_string(n.number());
}
} // namespace detail

template <class T>
void exported_program::check(std::vector<T> const& inputs) const {
  std::size_t const first = tokens() + state.size(), count = signature.inputs.size() - first;
  std::string const who = "varve: exported program: ";
  if (inputs.size() != count)
    refuse::with<value_error>(
        (who + "there are " + std::to_string(count) + " inputs, not " + std::to_string(inputs.size())).c_str());
  std::vector<std::pair<std::string, extent>> known; // names, and their numbers in this call
  for (bool derived : {false, true})                 // first the names themselves
    for (auto const& c : constraints) {
      if (c.size.is_derived() != derived) continue;
      T const& t = inputs[static_cast<std::size_t>(c.input)];
      std::string const& name = signature.inputs[first + static_cast<std::size_t>(c.input)].name;
      if (!t.defined() || c.axis >= t.dim()) continue; // the rank is checked below
      std::string const what = who + "expected input " + name + ".size(" + std::to_string(c.axis) + ") to be ";
      extent const n = t.sizes()[c.axis];
      auto const so_far = [&]() -> extent const* {
        for (auto const& k : known)
          if (k.first == c.size.name) return &k.second;
        return nullptr;
      }();
      if (so_far && n != c.size.times * *so_far + c.size.plus)
        refuse::with<shape_error>((what + c.size.text() + " = " +
                                   detail::text_of_size(c.size.times * *so_far + c.size.plus) + ", found " +
                                   detail::text_of_size(n))
                                      .c_str());
      if (!so_far && !derived) known.emplace_back(c.size.name, n);
      if (!derived && (n < c.size.least || n > c.size.greatest))
        refuse::with<shape_error>(
            (what +
             (n < c.size.least ? ">= " + std::to_string(c.size.least) : "<= " + std::to_string(c.size.greatest)) +
             ", found " + detail::text_of_size(n))
                .c_str());
    }
  for (std::size_t k = 0; k < count; ++k) {
    std::string const& name = signature.inputs[first + k].name;
    node const& n = graph.nodes[static_cast<std::ptrdiff_t>(first + k)];
    T const& t = inputs[k];
    if (!t.defined()) refuse::with<value_error>((who + "input " + name + " is undefined").c_str());
    if (t.dtype() != n.out.type)
      refuse::with<dtype_error>((who + "expected input " + name + " of dtype " + varve::name(n.out.type) + ", found " +
                                 varve::name(t.dtype()))
                                    .c_str());
    if (t.dim() != n.out.sizes.n)
      refuse::with<shape_error>((who + "expected input " + name + " of rank " + std::to_string(n.out.sizes.n) +
                                 ", found " + to_string(t.sizes()))
                                    .c_str());
    for (int d = 0; d < t.dim(); ++d)
      if (n.out.sizes[d].is_number() && t.sizes()[d] != n.out.sizes[d])
        refuse::with<shape_error>((who + "expected input " + name + ".size(" + std::to_string(d) + ") to be " +
                                   detail::text_of_size(n.out.sizes[d]) + ", found " +
                                   detail::text_of_size(t.sizes()[d]))
                                      .c_str());
  }
}

} // namespace varve

#pragma GCC diagnostic pop
