// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/prepared.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/graph/equal.hpp>
#include <varve/hop/attention_formula.hpp>
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/function_node.hpp>
#include <varve/kernel/attention.hpp>
#include <varve/op/cat.hpp>
#include <varve/rule/normalized_rows.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/vjp.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

/// @file
/// `flex_attention` of tensors without the matrix of scores, for calls that only eager autograd observes. It uses
/// `kernel::attend`, with `score_mod` and `mask_mod` as block programs that run on each tile.
///
/// Both functions are traced at every call, on one tile, so that they have the meaning that they have at that call. The
/// plans of the graphs are cached. Tiles that are masked completely are skipped. The formula handles what cannot be a
/// program of a tile: functions that draw random numbers, write, call kernels without plans, or have captures that
/// require a gradient.
namespace varve::detail {

/// A program for a function of the positions of a tile, which has the shape {1, 1, attention_rows, attention_cols}.
template <class Of = tensor>
struct tile_program {
  dependent<graph, Of> traced{};
  dependent<std::shared_ptr<fusion::prepared const>, Of> plan{};
  boxed_args captured{}; // follow the arguments, row-major
  bool by_batch_or_head = false;

  explicit operator bool() const { return plan != nullptr; }
  /// Runs the program. The arguments are tiles, then b, h, q, k.
  template <class T>
  void run(std::initializer_list<void const*> own, void* out) const {
    void const* in[16];
    std::size_t n = 0;
    for (void const* p : own) in[n++] = p;
    for (auto const& t : captured) in[n++] = t.raw();
    fusion::run_prepared<std::conditional_t<std::is_void_v<T>, T, void>>(*plan, in, &out);
  }
  boxed_args arguments(boxed_args own) const {
    for (auto const& c : captured) own.push_back(c);
    return own;
  }
};
/// True if a plan can make every operator of the graph part of its loops.
bool is_tile_function(graph const& g);
/// Returns the plan of a graph. The plans used last are cached.
template <class G> // a template, so that nothing is compiled where there is no attention
std::shared_ptr<fusion::prepared const> plan_of_tile(G const& g);
/// The positions of the tile that begins at a given row and column. Positions outside of the matrix are replaced by the
/// last valid ones.
struct tile_positions {
  static constexpr index_t rows = kernel::attention_rows, cols = kernel::attention_cols;
  std::int64_t batch = 0, head = 0, query[rows], key[cols];
  void move_to(index_t i, index_t j, index_t queries, index_t keys) {
    for (index_t r = 0; r < rows; ++r) query[r] = (std::min)(i + r, queries - 1);
    for (index_t c = 0; c < cols; ++c) key[c] = (std::min)(j + c, keys - 1);
  }
  static dims sizes() { return {1, 1, rows, cols}; }
  /// Appends the positions as tensors, which share no memory with this object.
  template <class T>
  void push_to(boxed_args& x) const {
    auto const vector = [](std::int64_t const* from, index_t n) {
      T t = T::empty(dims{n}, dtype::int64);
      std::memcpy(t.raw(), from, static_cast<std::size_t>(n) * sizeof *from);
      return t;
    };
    x.push_back(vector(&batch, 1)), x.push_back(vector(&head, 1));
    x.push_back(vector(query, rows)), x.push_back(vector(key, cols));
  }
};
template <class T>
T zeros_of(dims const& sizes, dtype t) {
  T r = T::empty(sizes, t);
  std::memset(r.raw(), 0, static_cast<std::size_t>(r.numel() * itemsize(t)));
  return r;
}
/// Returns the program of `f(tiles..., b, h, q, k)` for `Tiles` tiles of a dtype, or an empty one if f cannot be a
/// program.
template <int Tiles, class F>
auto trace_tile(F const& f, dtype tiles, dtype result, tile_positions const& at) {
  using T = dependent<tensor, F>;
  tile_program<T> r;
  boxed_args x, captured;
  for (int k = 0; k < Tiles; ++k) x.push_back(zeros_of<T>(tile_positions::sizes(), tiles));
  at.push_to<T>(x);
  auto const traced = [&]() -> tile_program<T> {
    auto const body = [&](boxed_args const& in) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        boxed_args y;
        push_results(y, f(static_cast<T const&>(in[K])...));
        return y;
      }(std::make_index_sequence<Tiles + 4>{});
    };
    auto g = trace_boxed<dependent<on_real_values, F>>(body, x, {}, capture_policy::collected, &captured);
    if (g.results.size() != 1 || !(g.nodes[g.results[0]].out == meta{result, tile_positions::sizes()})) return r;
    if (!is_tile_function(g)) return r;
    for (auto const& c : captured) {
      if (!c.defined() || c.is_wrapped() || !c.has_data() || !c.keys().has(dispatch_key::cpu)) return r;
      if (c.has_history() && is_grad_enabled()) return r;
      r.captured.push_back(c.is_contiguous() ? c.alias() : contiguous_copy(c));
    }
    for (int e : g.edges) r.by_batch_or_head = r.by_batch_or_head || e == Tiles || e == Tiles + 1;
    r.plan = plan_of_tile(g);
    r.traced = std::move(g);
    return r;
  };
  return attempt<error>(traced, [](error const&) { return tile_program<T>(); }); // the formula reports the error
}

/// The programs of `score_mod` and of `mask_mod`.
template <class Of = tensor>
struct attention_functions {
  tile_program<Of> score, mask, both; // both: scores, with -inf where the mask is false
};
/// Applies a program to all scores, tile by tile, in operators. It serves derivatives of gradients.
template <class Of>
struct over_all_tiles {
  tile_program<Of> const& f;
  bool takes_scores;
  template <class X>
  X over(X const& scores) const {
    constexpr index_t M = tile_positions::rows, N = tile_positions::cols;
    dims const s = scores.sizes();
    index_t const B = s[0].number(), H = s[1].number(), L = s[2].number(), S = s[3].number();
    index_t const rows = (L + M - 1) / M * M, cols = (S + N - 1) / N * N;
    X const tall = slice_backward(scores, dims{B, H, rows, S}, dims{2, 0, L, 1});
    X const all = slice_backward(tall, dims{B, H, rows, cols}, dims{3, 0, S, 1});
    auto const joined = [](index_t n, index_t apart, int axis, auto const& part) {
      std::vector<X> r;
      for (index_t k = 0; k < n; k += apart) r.push_back(part(k));
      return X(cat(r, axis));
    };
    tile_positions at;
    X const y = joined(B, 1, 0, [&](index_t b) {
      return joined(H, 1, 1, [&](index_t h) {
        return joined(L, M, 2, [&](index_t i) {
          return joined(S, N, 3, [&](index_t j) {
            boxed_args x;
            at.batch = b, at.head = h, at.move_to(i, j, L, S);
            if (takes_scores)
              x.push_back(X(slice(slice(slice(slice(all, 0, b, b + 1), 1, h, h + 1), 2, i, i + M), 3, j, j + N)));
            at.push_to<X>(x);
            return X(interpret<X>(f.traced, f.arguments(std::move(x)))[0]);
          });
        });
      });
    });
    return slice(slice(y, 2, 0, L), 3, 0, S);
  }
};

/// The tiles of a head, for `kernel::attend`.
template <class T>
class head_tiles {
  using functions = attention_functions<dependent<tensor, T>>;
  using program = tile_program<dependent<tensor, T>>;
  static constexpr index_t M = tile_positions::rows, N = tile_positions::cols;

public:
  head_tiles(functions const& f, program const* pull, std::vector<dependent<kernel::attention_span, T>> const& known,
             index_t queries, index_t keys)
      : f_(f), pull_(pull), known_(known), queries_(queries), keys_(keys),
        memory_(static_cast<std::size_t>(M * N) * (2 * sizeof(T) + 1)) {}
  tile_positions at{};

  kernel::attention_span span(index_t i, index_t j) {
    if (f_.score || f_.mask) at.move_to(i, j, queries_, keys_);
    index_t const n = (std::min)(N, keys_ - j);
    if (!f_.mask) return {0, n, true};
    if (known_.empty()) return seen((std::min)(M, queries_ - i), n);
    return known_[static_cast<std::size_t>(i / M * ((keys_ + N - 1) / N) + j / N)];
  }
  T* scores(kernel::attention_span const& s, T* x) {
    program const& f = s.all ? f_.score : f_.both;
    if (!f) return x;
    f.template run<T>({x, &at.batch, &at.head, at.query, at.key}, memory_.data());
    return reinterpret_cast<T*>(memory_.data());
  }
  T* pull(T const* x, T* g) {
    if (!f_.score) return g;
    auto* const to = reinterpret_cast<T*>(memory_.data() + tile_bytes);
    pull_->template run<T>({x, g, &at.batch, &at.head, at.query, at.key}, to);
    return to;
  }

private:
  static constexpr std::size_t tile_bytes = static_cast<std::size_t>(M * N) * sizeof(T);
  functions const& f_;
  program const* pull_;
  // of all tiles, if the mask is the same for all heads
  std::vector<dependent<kernel::attention_span, T>> const& known_;
  index_t queries_, keys_;
  fusion::scratch_block memory_;

  /// Evaluates the mask on a tile of m rows and n columns.
  kernel::attention_span seen(index_t m, index_t n) {
    unsigned char any[N] = {}, all[N];
    std::memset(all, 1, sizeof all);
    std::byte* const mask = memory_.data() + 2 * tile_bytes;
    f_.mask.template run<T>({&at.batch, &at.head, at.query, at.key}, mask);
    auto const* x = reinterpret_cast<unsigned char const*>(mask);
    for (index_t r = 0; r < m; ++r, x += N)
      for (index_t c = 0; c < N; ++c) any[c] |= x[c], all[c] &= x[c];
    kernel::attention_span s{0, n, true};
    while (s.first < n && !any[s.first]) ++s.first;
    while (s.last > s.first && !any[s.last - 1]) --s.last;
    for (index_t c = s.first; c < s.last; ++c) s.all = s.all && all[c];
    return s;
  }
};

/// The operands of attention in memory, head by head.
template <class T>
struct attention_operands {
  using functions = attention_functions<dependent<tensor, T>>;
  using program = tile_program<dependent<tensor, T>>;
  using all_spans = std::vector<dependent<kernel::attention_span, T>>;
  tensor const &q, &k, &v;
  double scale;
  index_t B, Hq, H, L, S, E, V;
  attention_operands(tensor const& q_, tensor const& k_, tensor const& v_, double scale_)
      : q(q_), k(k_), v(v_), scale(scale_), B(size(q, 0)), Hq(size(q, 1)), H(size(k, 1)), L(size(q, 2)), S(size(k, 2)),
        E(size(q, 3)), V(size(v, 3)) {}
  static index_t size(tensor const& t, int axis) { return t.sizes()[axis].number(); }
  /// Returns the matrix of a batch element and head. A batch of size 1 serves all batch elements.
  static kernel::matrix<T const> matrix(tensor const& t, index_t b, index_t h) {
    dims const s = t.strides();
    index_t const from = (size(t, 0) == 1 ? 0 : b) * s[0].number() + h * s[1].number();
    return {static_cast<T const*>(t.raw()) + from, s[2].number(), s[3].number()};
  }
  index_t head_of_key(index_t h) const { return h / (Hq / H); }
  kernel::attention_head<T> head(index_t b, index_t h) const {
    index_t const g = head_of_key(h);
    return {matrix(q, b, h), matrix(k, b, g), matrix(v, b, g), L, S, E, V};
  }
  /// Returns the spans of all tiles if the mask is the same for all batch elements and heads, else nothing.
  all_spans spans(functions const& f) const {
    all_spans r;
    if (!f.mask || f.mask.by_batch_or_head) return r;
    all_spans const unknown;
    head_tiles<T> tiles(f, nullptr, unknown, L, S);
    for (index_t i = 0; i < L; i += tile_positions::rows)
      for (index_t j = 0; j < S; j += tile_positions::cols) r.push_back(tiles.span(i, j));
    return r;
  }
  void forward(functions const& f, T* out, T* lse) const {
    constexpr index_t M = kernel::attention_rows;
    auto const known = spans(f);
    index_t const blocks = (L + M - 1) / M; // of rows, in one head
    fusion::share(B * Hq * blocks, 1, B * Hq * L * S, [&](index_t first, index_t last) {
      head_tiles<T> tiles(f, nullptr, known, L, S);
      while (first < last) {
        index_t const k = first / blocks, b = k / Hq, h = k % Hq, end = (std::min)(last, (k + 1) * blocks);
        tiles.at.batch = b, tiles.at.head = h;
        kernel::attend<T>(head(b, h), (first - k * blocks) * M, (std::min)((end - k * blocks) * M, L),
                          static_cast<T>(scale), tiles, out + k * L * V, lse + k * L);
        first = end;
      }
    });
  }
  /// Computes the gradients. `of_lse` may be null. The gradients are row-major; those of key and value are added to.
  void backward(functions const& f, program const* pull, tensor const& out, tensor const& of_out, T const* lse,
                T const* of_lse, T* dq, T* dk, T* dv) const {
    auto const known = spans(f);
    bool const apart = size(k, 0) == B && size(v, 0) == B; // else batch elements add to the same keys or values
    index_t const batches = apart ? 1 : B, heads = Hq / H; // processed by one part
    fusion::share(apart ? B * H : H, 1, B * Hq * L * S, [&](index_t first, index_t last) {
      head_tiles<T> tiles(f, pull, known, L, S);
      for (; first < last; ++first)
        for (index_t c = 0; c < batches; ++c)
          for (index_t h = first % H * heads; h < (first % H + 1) * heads; ++h) {
            index_t const b = apart ? first / H : c, row = (b * Hq + h) * L;
            index_t const of_key = ((size(k, 0) == 1 ? 0 : b) * H + head_of_key(h)) * S;
            index_t const of_value = ((size(v, 0) == 1 ? 0 : b) * H + head_of_key(h)) * S;
            tiles.at.batch = b, tiles.at.head = h;
            kernel::attend_backward<T>(
                head(b, h), static_cast<T>(scale), tiles,
                {matrix(out, b, h), matrix(of_out, b, h), lse + row, of_lse ? of_lse + row : nullptr}, dq + row * E,
                dk + of_key * E, dv + of_value * V);
          }
    });
  }
};

/// The backward function of attention by tiles. It uses tiles again. It uses the formula if something observes the
/// backward pass, or if the gradient of `score_mod` cannot be a program.
template <class T = tensor>
struct attention_pull {
  std::shared_ptr<attention_functions<T>> f;
  double scale;
  bool gqa;
  boxed_args saved; // query, key, value, out, lse
  std::vector<dependent<std::uint32_t, T>> versions{};
  grad_node* self = nullptr;
  static constexpr bool released = true;
  static constexpr char const* name = "FlexAttentionBackward";

  boxed_args operator()(boxed_args const& g, bool const*) const {
    for (int k = 0; k < saved.size(); ++k)
      if (saved[k].writes() != versions[static_cast<std::size_t>(k)])
        refuse_stale(saved[k], name, versions[static_cast<std::size_t>(k)]);
    if (!g[0].defined() && !g[1].defined()) return boxed_args(3);
    bool plain = this_thread_state.quiet() && !is_grad_enabled();
    for (auto const& t : g)
      plain = plain && (!t.defined() || (!t.is_wrapped() && t.has_data() && t.dtype() == saved[0].dtype()));
    tile_program<T> pull;
    if (plain && f->score) plain = static_cast<bool>(pull = traced_pull());
    return plain ? by_tiles(g, pull) : by_formula(g);
  }
  void release() { saved = boxed_args(); }
  void let_go(tensor const& written) {
    for (int k = 0; k < saved.size(); ++k)
      if (saved[k].shares_storage(written)) saved[k] = saved[k].alias();
  }

private:
  tile_program<T> traced_pull() const {
    tile_positions at;
    at.move_to(0, 0, saved[0].sizes()[2].number(), saved[1].sizes()[2].number());
    auto const pulled = [&](T const& x, T const& g, T const& b, T const& h, T const& q, T const& k) {
      auto const of_scores = [&](T const& s) -> T {
        return interpret<T>(f->score.traced, f->score.arguments(boxed_args(s, b, h, q, k)))[0];
      };
      return std::get<0>(vjp(of_scores, x).second(g));
    };
    return trace_tile<2>(pulled, saved[0].dtype(), saved[0].dtype(), at);
  }
  static T zeros_as(tensor const& t) { return detail::zeros_of<T>(t.sizes(), t.dtype()); }
  boxed_args by_tiles(boxed_args const& g, tile_program<T> const& pull) const {
    T const of_out = g[0].defined() ? T(g[0]) : zeros_as(saved[3]);
    T const of_lse = g[1].defined() ? contiguous_or_copy(g[1]) : T();
    boxed_args r(zeros_as(saved[0]), zeros_as(saved[1]), zeros_as(saved[2]));
    on_floats(saved[0].dtype(), [&]<class E>() {
      attention_operands<E>(saved[0], saved[1], saved[2], scale)
          .backward(*f, f->score ? &pull : nullptr, saved[3], of_out, floats_of<E>(saved[4]),
                    of_lse.defined() ? floats_of<E>(of_lse) : nullptr, static_cast<E*>(r[0].raw()),
                    static_cast<E*>(r[1].raw()), static_cast<E*>(r[2].raw()));
    });
    return r;
  }
  boxed_args by_formula(boxed_args const& g) const {
    T x[3];
    for (int k = 0; k < 3; ++k) {
      x[k] = saved[k].alias();
      if (is_grad_enabled() && self->next[k]) x[k].set_history(self->next[k]);
    }
    auto const computed = [&](T const& q, T const& k, T const& v) {
      over_all_tiles<T> const score{f->score, true}, mask{f->mask, false};
      auto const with = [&](auto const& s, auto const& m) {
        auto const p = attention_formula::parts(q, k, v, s, m, scale, gqa);
        return std::pair<T, T>(std::get<0>(p), attention_formula::lse(p));
      };
      if (f->score && f->mask) return with(score, mask);
      if (f->score) return with(score, none);
      return f->mask ? with(none, mask) : with(none, none);
    };
    auto const ran = vjp(computed, x[0], x[1], x[2]);
    auto const cotangent = [&](int k) { return g[k].defined() ? T(g[k]) : zeros_as(saved[3 + k]); };
    auto const r = ran.second(std::pair(cotangent(0), cotangent(1)));
    return boxed_args(T(std::get<0>(r)), T(std::get<1>(r)), T(std::get<2>(r)));
  }
};

/// Runs attention by tiles and records it in eager autograd.
template <class T>
std::pair<T, T> attend_and_record(T const& q, T const& k, T const& v, std::shared_ptr<attention_functions<T>> const& f,
                                  double scale, bool gqa) {
  dims const s = q.sizes();
  T out = T::empty(dims{s[0], s[1], s[2], v.sizes()[3]}, q.dtype()), lse = T::empty(dims{s[0], s[1], s[2]}, q.dtype());
  on_floats(q.dtype(), [&]<class E>() {
    attention_operands<E>(q, k, v, scale).forward(*f, static_cast<E*>(out.raw()), static_cast<E*>(lse.raw()));
  });
  {
    no_grad const off;
    out = in_order_of(q, out).alias();
  }
  bool const any = q.has_history() || k.has_history() || v.has_history();
  if (!any || !is_grad_enabled() || is_inference_mode_enabled()) return {out, lse};
  for (tile_program<T>* p : {&f->score, &f->mask, &f->both}) // captured values may be written before the backward pass
    for (int c = 0; c < p->captured.size(); ++c) p->captured[c] = contiguous_copy(p->captured[c]);
  attention_pull<T> pull{f, scale, gqa, {}};
  std::vector<edge> edges;
  for (tensor const* t : {&q, &k, &v}) {
    edges.push_back(t->has_history() ? edge(eager_history(*t)) : edge());
    pull.saved.push_back(t->alias());
  }
  pull.saved.push_back(out.alias()), pull.saved.push_back(lse.alias());
  for (auto const& t : pull.saved) pull.versions.push_back(t.writes());
  edge const n = edge_to(record_function(std::move(pull), std::move(edges), 2, attention_pull<T>::name));
  static_cast<function_node<attention_pull<T>>*>(n.to())->pullback.self = n.to();
  out.set_history(edge(n.to(), 0)), lse.set_history(edge(n.to(), 1));
  return {out, lse};
}
/// True if attention of these tensors can be computed in tiles.
bool fits_tiles(tensor const& q, tensor const& k, tensor const& v);

/// Returns the result and the logarithms of the sums of exponentials; both are undefined if the formula must be used.
template <class F, class M, class S>
std::pair<tensor, tensor> attention_by_tiles(tensor const& q, tensor const& k, tensor const& v, F const& score_mod,
                                             M const& block_mask, S const& scale, bool gqa) {
  using T = dependent<tensor, F>;
  if constexpr (!is_none<S> && !std::is_arithmetic_v<S>) return {};
  else {
    if (!fits_tiles(q, k, v)) return {};
    check_attention_dtypes(q, k, v);
    check_attention_shapes(q.sizes(), k.sizes(), v.sizes(), gqa);
    auto const f = std::make_shared<attention_functions<T>>();
    tile_positions at;
    at.move_to(0, 0, q.sizes()[2].number(), k.sizes()[2].number());
    if constexpr (!is_none<F>) {
      auto const score = [&](T const& s, T const& b, T const& h, T const& i, T const& j) {
        return at_positions(score_mod, b, h, i, j, s);
      };
      if (!(f->score = trace_tile<1>(score, q.dtype(), q.dtype(), at))) return {};
    }
    if constexpr (!is_none<M>) {
      check_attention_mask(to_dims(block_mask.sizes), q.sizes(), k.sizes());
      check_mask_captures(captures_of(block_mask.mask_mod));
      auto const mask = [&](T const& b, T const& h, T const& i, T const& j) {
        return at_positions(block_mask.mask_mod, b, h, i, j);
      };
      auto const both = [&](T const& s, T const& b, T const& h, T const& i, T const& j) {
        auto const allowed = at_positions(block_mask.mask_mod, b, h, i, j);
        auto const nothing = -std::numeric_limits<double>::infinity();
        if constexpr (is_none<F>) return where(allowed, s, nothing);
        else return where(allowed, at_positions(score_mod, b, h, i, j, s), nothing);
      };
      if (!(f->mask = trace_tile<0>(mask, q.dtype(), dtype::bool_, at))) return {};
      if (!(f->both = trace_tile<1>(both, q.dtype(), q.dtype(), at))) return {};
    }
    double factor = 0;
    if constexpr (is_none<S>) factor = 1 / std::sqrt(static_cast<double>(q.sizes()[3].number()));
    else factor = static_cast<double>(scale);
    return attend_and_record<T>(q, k, v, f, factor, gqa);
  }
}
} // namespace varve::detail

#if VARVE_DEFINES
namespace varve::detail {
VARVE_COLD VARVE_LIBRARY bool is_tile_function(graph const& g) {
  using c = operator_class;
  if (g.regions.size() != 1 || !g.functions.empty() || g.expressions.size() != 0 || g.regions[0].inputs > 16)
    return false;
  for (node const& n : g) {
    c const what = identify(*n.op);
    if (what > c::sum && what != c::reshape && what != c::permute && what != c::expand && what != c::slice &&
        what != c::slice_backward && what != c::cat && what != c::gather && what != c::one_hot && what != c::arange)
      return false;
  }
  return true;
}
template <class G>
VARVE_COLD std::shared_ptr<fusion::prepared const> plan_of_tile(G const& g) {
  struct kept {
    G of;
    std::shared_ptr<fusion::prepared const> plan;
  };
  static std::vector<kept> all; // most recently used first
  static spin_lock lock;
  constexpr std::size_t most = 64;
  {
    spin_lock::held const on(lock);
    for (auto k = all.begin(); k != all.end(); ++k)
      if (equal(k->of, g)) {
        std::rotate(all.begin(), k, k + 1);
        return all.front().plan;
      }
  }
  auto plan = fusion::prepare_tables<>(fusion::typed_and_optimized(g));
  spin_lock::held const on(lock);
  all.insert(all.begin(), {g, plan});
  if (all.size() > most) all.pop_back();
  return plan;
}
VARVE_LIBRARY bool fits_tiles(tensor const& q, tensor const& k, tensor const& v) {
  tensor const* const all[] = {&q, &k, &v};
  if (!only_autograd_watches(all, 3) || this_thread_state.saved_hooks || this_thread_state.anomaly || watches_reads ||
      !are_built_in<mm_t, mul_t, exp_t, sum_t, amax_t, sub_t, reciprocal_t, where_t>())
    return false;
  for (tensor const* t : all)
    if (t->dim() != 4 || t->is_wrapped() || !t->has_data() || !t->keys().has(dispatch_key::cpu) || t->is_inference() ||
        t->numel() == 0)
      return false;
  return are_floats(all, 3);
}
} // namespace varve::detail
#endif
