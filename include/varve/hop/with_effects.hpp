// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/at_start.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/op/create.hpp>
#include <varve/pass/dce.hpp>
#include <varve/rule/effect.hpp>

/// @file
/// Effects in functional graphs. A token without data is passed from call to call, so that the order of effects becomes
/// a data dependency, which partitions and other graph programs respect.
namespace varve {

/// Tag of `with_effects`: a call of the effect that is its function, or of a call that contains effects. Operand 0 is
/// the token. The results are the next token and the results of the call.
struct with_effects_t : detail::plain_call {
  static constexpr auto op_name = "with_effects", backward_name = "WithEffectsBackward";
  static constexpr bool is_call = false;
  static constexpr int given_from = 1;
  static constexpr hop_signature signature{"(Tensor token, GraphModule effect, Tensor[] operands) -> Tensor[]"};
};
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template higher_order_operator& detail::region_operator<with_effects_t>();
#elif VARVE_COMPILED
extern template higher_order_operator& detail::region_operator<with_effects_t>();
#endif

/// The operator that makes a token: a bool tensor without elements.
inline constexpr struct make_token_t {
  static constexpr auto op_name = "_make_token";
} make_token_op{};
template <>
struct rules<make_token_t> : detail::factory {
  static constexpr bool in_headers = true;
  static constexpr auto schema = "() -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const*) { return at; }
  static constexpr meta shape(attributes const&, meta const*, int) { return {dtype::bool_, dims{0}}; }
  static tensor make(attributes const&) { return tensor::empty(dims{0}, dtype::bool_); }
};
/// The operator that consumes a token: all effects before it have happened.
inline constexpr struct sink_tokens_t {
  static constexpr auto op_name = "_sink_tokens";
} sink_tokens_op{};
template <>
struct rules<sink_tokens_t> : rule::effect<rules<sink_tokens_t>> {
  static constexpr bool in_headers = true;
  static constexpr auto schema = "(Tensor token) -> ()";
  static tensor make(attributes const& at, tensor const& x) { return detail::unacted_result<rules>(at, x); }
};

namespace detail {
/// Makes the operators of tokens known by name, from the start of a program that makes tokens or reads graphs.
template <class T = void>
VARVE_FIRST inline at_start const tokens_are_known{[] {
  (void)registered_table<dependent<make_token_t, T>, 0>(), (void)registered_table<dependent<sink_tokens_t, T>, 0>();
  (void)region_operator<dependent<with_effects_t, T>>();
}};
inline meta token_meta() { return {dtype::bool_, dims{0}}; }
inline tensor token() { return tensor::empty(dims{0}, dtype::bool_); }
/// Rewrites a graph with tokens.
template <class G>
class token_writer {
public:
  token_writer(G const& g, int forward)
      : g_(g), w_(g), count_(count_effects(g)), forward_(forward < count_ ? forward : count_),
        results_(g.nodes.size(), 0), call_of_(g.nodes.size(), -1) {
    region const& f = g.regions[0];
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
      if (node const& nd = g.nodes[n]; nd.op == &getitem_handle) {
        int& most = results_[g.edges[nd.first]];
        int const k = 1 + static_cast<int>(nd.at[0][0]);
        if (most < k) most = k;
      }
  }
  G run() {
    region own = g_.regions[0];
    int const inputs = own.inputs;
    w_.copy_region(
        own, [&](int n) { return each(n, inputs); },
        [&] {
          if (forward_ > 0) token_ = argument(0);
          if (inputs == 0) end_arguments(0);
        });
    region& mine = w_.to.regions.back();
    mine.inputs = inputs + (forward_ > 0) + (forward_ < count_);
    list<int> results;
    if (forward_ > 0) results.push_back(token_);
    for (int r : w_.to.results) results.push_back(r);
    if (forward_ < count_) results.push_back(late_);
    w_.to.results = results;
    mine.result_count = static_cast<int>(results.size());
    for (int n : calls_) write_region(n);
    for (std::size_t r = 1; r < g_.regions.size(); ++r)
      w_.copy_region(g_.regions[r], [&](int n) { return later(w_.copy(g_.nodes[n])); }, [] {});
    return std::move(w_.to);
  }

private:
  int argument(int number) {
    node n;
    n.op = &placeholder_handle, n.out = token_meta(), n.value = number;
    return w_.append(n, nullptr);
  }
  /// Adds the last argument, at its place among the nodes.
  void end_arguments(int inputs) {
    if (forward_ < count_) late_ = argument(inputs + (forward_ > 0));
  }
  /// Adjusts the functions of a node, which come after the functions that are written for calls.
  int later(int n) {
    if (w_.to.nodes[n].regions_count) w_.to.nodes[n].regions_first += count_;
    return n;
  }
  int part(int call, int k, meta const& m) {
    node n;
    n.op = &getitem_handle, n.at = attributes(dims{k}), n.count = 1, n.out = m;
    return w_.append(n, &call);
  }
  int each(int n, int inputs) {
    node const& nd = g_.nodes[n];
    if (nd.op == &placeholder_handle) {
      int const mine = w_.copy(nd);
      w_.to.nodes[mine].value += forward_ > 0;
      if (n + 1 == g_.regions[0].node_first + inputs) end_arguments(inputs);
      return mine;
    }
    if (nd.op == &getitem_handle)
      if (int const call = call_of_[g_.edges[nd.first]]; call >= 0)
        return part(call, 1 + static_cast<int>(nd.at[0][0]), nd.out);
    if (!acts(g_, nd)) return later(w_.copy(nd));
    int& token = static_cast<int>(calls_.size()) < forward_ ? token_ : late_;
    node call;
    call.op = &hop_handle<with_effects_t>, call.at = attributes(dims{0}), call.out = token_meta(), call.mode = nd.mode;
    call.count = 1 + nd.count, call.regions_first = 1 + static_cast<int>(calls_.size()), call.regions_count = 1;
    list<int> in;
    in.push_back(token);
    for (int k = 0; k < nd.count; ++k) in.push_back(w_.operand(nd, k));
    int const mine = w_.append(call, in.data());
    calls_.push_back(n);
    call_of_[n] = mine;
    token = part(mine, 0, token_meta());
    return results_[n] ? mine : part(mine, 1, nd.out);
  }
  /// Writes the function of a call: the node, and the next token.
  void write_region(int n) {
    node nd = g_.nodes[n];
    region r;
    r.node_first = static_cast<int>(w_.to.nodes.size()), r.inputs = nd.count;
    list<int> in, results;
    for (int k = 0; k < nd.count; ++k) {
      node x;
      x.op = &placeholder_handle, x.value = k;
      x.out = g_.nodes[g_.edges[nd.first + k]].out;
      in.push_back(w_.append(x, nullptr));
    }
    nd.mode = recording::as_around;
    int const mine = later(w_.append(nd, in.data()));
    node made;
    made.op = &handle<make_token_t>, made.out = token_meta();
    results.push_back(w_.append(made, nullptr));
    for (int k = 0; k < results_[n]; ++k) results.push_back(part(mine, k, meta_of_part(n, k)));
    if (!results_[n]) results.push_back(mine);
    r.node_count = static_cast<int>(w_.to.nodes.size()) - r.node_first;
    r.result_first = static_cast<int>(w_.to.results.size()), r.result_count = static_cast<int>(results.size());
    for (int k : results) w_.to.results.push_back(k);
    w_.to.regions.push_back(r);
  }
  meta meta_of_part(int n, int k) const {
    for (node const& p : g_.nodes)
      if (p.op == &getitem_handle && g_.edges[p.first] == n && p.at[0][0] == k) return p.out;
    return function_result(n, k);
  }
  /// Returns the shape and dtype of a result that no node reads.
  meta function_result(int n, int k) const {
    node const& nd = g_.nodes[n];
    region const& f = g_.regions[nd.regions_first + nd.regions_count - 1];
    return k < f.result_count ? g_.nodes[g_.results[f.result_first + k]].out : nd.out;
  }

  G const& g_;
  rewriter w_;
  int count_, forward_;
  int token_ = -1, late_ = -1;
  list<int> results_, call_of_; // per node: the number of results read, and the call that replaces it
  list<int> calls_;             // nodes that became calls
};
} // namespace detail

/// Returns a graph whose effects are calls by `with_effects`, each with the token that the previous one returned. The
/// first argument is a token, and so is the first result. In a joint graph the first `forward` effects belong to the
/// forward pass. The effects of the backward pass have a separate token, the last argument and the last result. A
/// branch or loop that contains effects becomes one such call. A graph without effects is returned unchanged.
template <class G>
  requires std::is_same_v<G, graph>
G with_effect_tokens(G const& g, int forward = 1 << 30) {
  if (detail::count_effects(g) == 0) return g;
  (void)&detail::tokens_are_known<dependent<void, G>>;
  return detail::token_writer<G>(g, forward).run();
}
/// Returns a graph without the token that is its first argument and first result: the token is made and consumed
/// inside. Throws `value_error` if the first argument or first result is not a token.
template <class G>
  requires std::is_same_v<G, graph>
G unlift_effect_tokens(G const& g) {
  (void)&detail::tokens_are_known<dependent<void, G>>;
  region const own = g.regions[0];
  auto const is_token = [&](int n) { return g.nodes[n].out == detail::token_meta(); };
  int first = own.node_first;
  if (own.inputs == 0 || own.result_count == 0 || !is_token(g.results[own.result_first]))
    refuse::argument_is_invalid("unlift_effect_tokens", "the first argument and the first result are no token");
  while (first < own.node_first + own.inputs && g.nodes[first].value != 0) ++first;
  if (!is_token(first))
    refuse::argument_is_invalid("unlift_effect_tokens", "the first argument and the first result are no token");
  rewriter w(g);
  int made = -1;
  node token;
  token.op = &handle<make_token_t>, token.out = detail::token_meta();
  auto const each = [&](int n) {
    node const& nd = g.nodes[n];
    if (n == first) return -1;
    if (nd.op == &placeholder_handle) {
      int const mine = w.copy(nd);
      w.to.nodes[mine].value -= 1;
      return mine;
    }
    if (made < 0) w.now[first] = made = w.append(token, nullptr);
    int const mine = w.copy(nd);
    if (n == g.results[own.result_first]) {
      node sink;
      sink.op = &handle<sink_tokens_t>, sink.out = {dtype::int64, {}}, sink.count = 1;
      w.append(sink, &mine);
    }
    return mine;
  };
  w.copy_region(own, each, [] {});
  region& mine = w.to.regions.back();
  mine.inputs -= 1;
  list<int> results;
  for (std::size_t k = 1; k < w.to.results.size(); ++k) results.push_back(w.to.results[k]);
  w.to.results = results, mine.result_count -= 1;
  for (std::size_t r = 1; r < g.regions.size(); ++r)
    w.copy_region(g.regions[r], [&](int n) { return w.copy(g.nodes[n]); }, [] {});
  return std::move(w.to);
}

} // namespace varve
