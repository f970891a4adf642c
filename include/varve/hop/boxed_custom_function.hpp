// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <varve/hop/boxed_cond.hpp>
#include <varve/hop/custom_function_call.hpp>
#include <varve/interpreter/eager.hpp>

/// @file
/// Custom functions on tensors: a function and its context erased, and what each layer of the thread's stack does with a call (AF-19).
namespace varve::detail {

/// What `setup_context` left, erased. Its tensors are held apart, so that a mapped level can take them out and put them in again.
struct boxed_context {
  boxed_args saved;
  unsigned constant_results = 0, dirty_operands = 0;
  bool materialize = true, once = false;
  virtual ~boxed_context() = default;
  /// Gradients of the operands; tangents of the results.
  virtual boxed_args backward(boxed_args const& saved, boxed_args const& g) const = 0;
  virtual boxed_args jvp(boxed_args const& saved, boxed_args const& t) const = 0;
};
/// A custom function with its arguments that are no tensors, erased.
struct boxed_custom_function {
  virtual ~boxed_custom_function() = default;
  virtual char const* name() const = 0;
  virtual boxed_args forward(boxed_args const& x) const = 0;
  virtual std::shared_ptr<boxed_context> context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const = 0;
  /// Its own `vmap`: operands with the batch in front where `mapped`; results have it there too. Null results: it has none, and asks for the generated rule.
  virtual boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const = 0;
};
using custom_function_ptr = std::shared_ptr<boxed_custom_function const>;
template <class = void>
boxed_args call_custom(custom_function_ptr const& f, boxed_args const& x);

/// Values of a transform opened: inside, and which they were.
struct opened_args {
  boxed_args inner;
  std::vector<bool> mine;
  bool any = false;
  opened_args(layer const& l, boxed_args const& x) {
    for (auto const& t : x) {
      bool const m = t.defined() && t.is_wrapped() && t.layer() == l.id;
      inner.push_back(m ? t.inner() : t);
      mine.push_back(m);
      any = any || m;
    }
  }
};
template <class T>
T with_batch(T const& t, index_t n, int rank) {
  return t.dim() > rank ? t : T(expand(t, [&] { dims s = t.sizes(); return s.insert(0, n); }()));
}

/// `vmap` of a custom function as a custom function (AF-25).
template <class T = tensor>
struct mapped_custom_function : boxed_custom_function {
  custom_function_ptr f;
  std::vector<bool> mapped;
  index_t n;
  random_policy random;
  mapped_custom_function(custom_function_ptr g, std::vector<bool> m, index_t size, random_policy r) : f(std::move(g)), mapped(std::move(m)), n(size), random(r) {}

  char const* name() const override { return f->name(); }
  static boxed_args close(auto const& put, boxed_args const& x, std::vector<bool> const& flags) {
    boxed_args r;
    for (int k = 0; k < x.size(); ++k) r.push_back(put(x[k], flags[static_cast<std::size_t>(k)]));
    return r;
  }
  /// Results of the function as slices have them, with the batch in front of every one.
  boxed_args forward(boxed_args const& x) const override {
    dynamic_batch_scope<> scope(n, random);
    boxed_args const y = scope.run([&] { return f->forward(close([&](tensor const& t, bool m) { return m ? scope.map(t) : t; }, x, mapped)); });
    boxed_args r;
    for (auto const& t : y) r.push_back(scope.mapped(t) ? T(scope.unmapped(t)) : with_batch(T(t), n, t.dim()));
    return r;
  }
  struct context_t : boxed_context {
    std::shared_ptr<boxed_context> inner;
    std::vector<bool> operands, saved_mapped;
    std::vector<int> ranks; // of the operands' slices
    index_t n;
    random_policy random;
    boxed_args backward(boxed_args const& s, boxed_args const& g) const override {
      dynamic_batch_scope<> scope(n, random);
      auto const put = [&](tensor const& t, bool m) { return m && t.defined() ? scope.map(t) : t; };
      boxed_args const r = scope.run([&] { return inner->backward(close(put, s, saved_mapped), close(put, g, std::vector<bool>(static_cast<std::size_t>(g.size()), true))); });
      boxed_args out;
      for (int k = 0; k < r.size(); ++k) {
        bool const batched = r[k].defined() && scope.mapped(r[k]);
        T const v = batched ? T(scope.unmapped(r[k])) : T(r[k]);
        bool const was = operands[static_cast<std::size_t>(k)];
        if (!v.defined() || batched == was) out.push_back(v);
        else if (was) out.push_back(with_batch(v, n, v.dim()));
        else out.push_back(T(sum(v, dims{0})));
      }
      return out;
    }
    boxed_args jvp(boxed_args const& s, boxed_args const& t) const override {
      dynamic_batch_scope<> scope(n, random);
      auto const put = [&](tensor const& v, bool m) { return m && v.defined() ? scope.map(v) : v; };
      boxed_args const r = scope.run([&] { return inner->jvp(close(put, s, saved_mapped), close(put, t, operands)); });
      boxed_args out;
      for (auto const& v : r) out.push_back(!v.defined() ? v : scope.mapped(v) ? T(scope.unmapped(v)) : with_batch(T(v), n, v.dim()));
      return out;
    }
  };
  std::shared_ptr<boxed_context> context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    auto c = std::make_shared<context_t>();
    dynamic_batch_scope<> scope(n, random);
    auto const put = [&](tensor const& t, bool m) { return m ? scope.map(t) : t; };
    c->inner = scope.run([&] { return f->context(needs, close(put, x, mapped), close(put, y, std::vector<bool>(static_cast<std::size_t>(y.size()), true))); });
    for (auto& t : c->inner->saved) {
      bool const m = t.defined() && scope.mapped(t);
      c->saved.push_back(m ? T(scope.unmapped(t)) : T(t));
      c->saved_mapped.push_back(m);
    }
    c->inner->saved = boxed_args();
    c->operands = mapped;
    c->n = n;
    c->random = random;
    c->constant_results = c->inner->constant_results;
    c->dirty_operands = c->inner->dirty_operands;
    c->materialize = c->inner->materialize;
    if (c->dirty_operands) throw transform_error((std::string("varve: ") + name() + ": the generated vmap rule does not support mark_dirty; give the function a vmap of its own").c_str());
    return c;
  }
  boxed_args vmap(vmap_info const&, std::vector<bool> const&, boxed_args const&) const override { return {}; }
};

/// The pullback of a recorded custom function, with the checks of what it returns (AF-9..12).
template <class T = tensor>
struct custom_pull {
  std::shared_ptr<boxed_context> context;
  std::vector<meta> operands, results;
  std::vector<std::uint32_t> versions;
  std::string label;
  /// Eagerly, results that were saved are kept without their history, which is this node: it would keep itself alive. For each saved tensor which result it is, or -1.
  std::vector<int> result_of{};
  grad_node* self = nullptr;
  static constexpr bool released = true;

  boxed_args unpacked() const {
    boxed_args s = context->saved;
    for (int k = 0; self && this_thread_state.grad_mode && k < s.size(); ++k)
      if (int const r = result_of[static_cast<std::size_t>(k)]; r >= 0 && !(context->constant_results >> r & 1) && is_floating(s[k].dtype())) {
        s[k] = s[k].alias();
        s[k].set_history(edge(self, static_cast<std::uint32_t>(r)));
      }
    return s;
  }

  boxed_args operator()(boxed_args const& out, bool const* wanted) const {
    boxed_args g;
    bool any = false;
    for (int k = 0; k < out.size(); ++k) {
      meta const& m = results[static_cast<std::size_t>(k)];
      any = any || out[k].defined();
      g.push_back(out[k].defined() || !context->materialize ? out[k] : tensor(zeros_of(m)));
    }
    if (!any && context->materialize) return {};
    boxed_args r = [&] {
      for (int k = 0; k < context->saved.size(); ++k)
        if (context->saved[k].defined() && version_of(context->saved[k]) != versions[static_cast<std::size_t>(k)]) refuse_stale(context->saved[k], label.c_str(), versions[static_cast<std::size_t>(k)]);
      if (!context->once) return context->backward(unpacked(), g);
      no_grad const off;
      return context->backward(unpacked(), g);
    }();
    for (int k = 0; k < r.size(); ++k) {
      if (!r[k].defined() || !wanted[k]) continue;
      meta const& m = operands[static_cast<std::size_t>(k)];
      if (!(r[k].sizes() == m.sizes)) {
        if (r[k].dim() < m.sizes.n || !(broadcast(r[k].sizes(), m.sizes) == r[k].sizes()))
          throw autograd_error(("varve: " + label + ": backward returned a gradient of shape " + to_string(r[k].sizes()) + " for argument " + std::to_string(k) + "; expected shape " + to_string(m.sizes)).c_str());
        r[k] = T(sum_to_size(static_cast<T const&>(r[k]), m.sizes));
      }
      if (r[k].dtype() != m.type) r[k] = T(to(static_cast<T const&>(r[k]), m.type));
      if (context->once && this_thread_state.grad_mode && [&] { for (auto const& t : g) if (t.defined() && t.requires_grad()) return true; return false; }()) {
        r[k] = r[k].alias();
        auto refuse = [l = label](boxed_args const&, bool const*) -> boxed_args { throw autograd_error(("varve: " + l + " is once_differentiable: its backward cannot be differentiated").c_str()); };
        r[k].set_history(edge_to(record_function(refuse, {edge()}, 1, "Error")));
      }
    }
    return r;
  }
  static T zeros_of(meta const& m) {
    return [](auto const& sizes, auto type) { return full(sizes, 0, type); }(m.sizes, m.type);
  }
  void release() { context->saved = boxed_args(); }
};

/// Records a call at a level, or eagerly (`E`): `close(y, k, edge)` makes the value seen there.
template <class T, bool E, class Close>
boxed_args record_custom(boxed_custom_function const& f, std::vector<edge> edges, boxed_args const& x, boxed_args const& y, std::vector<bool> const& needs, Close const& close) {
  auto c = f.context(needs, x, y);
  std::string const label = std::string(f.name()) + "Backward";
  custom_pull<T> pull{c, {}, {}, {}, label};
  for (int s = 0; E && s < c->saved.size(); ++s) {
    refuse_inference(c->saved[s], f.name());
    pull.result_of.push_back(-1);
    for (int k = 0; k < y.size(); ++k)
      if (c->saved[s].defined() && c->saved[s].is(y[k])) pull.result_of.back() = k;
  }
  for (auto const& t : x) pull.operands.push_back(t.defined() ? meta_of(t) : meta{});
  for (auto const& t : y) pull.results.push_back(meta_of(t));
  for (auto const& t : c->saved) pull.versions.push_back(t.defined() ? version_of(t) : 0);
  for (int k = 0; k < y.size(); ++k)
    for (int i = 0; i < x.size(); ++i)
      for (auto const& t : c->saved)
        if (y[k].is(x[i]) && t.is(y[k]) && !(c->dirty_operands >> i & 1))
          throw autograd_error((std::string("varve: ") + f.name() + ": an input that is returned as-is was saved; return a clone or a view of it, or mark_dirty it").c_str());
  for (int s = 0; E && s < c->saved.size(); ++s)
    if (pull.result_of[static_cast<std::size_t>(s)] >= 0) c->saved[s] = c->saved[s].alias();
  edge const n = edge_to(record_function(std::move(pull), std::move(edges), y.size(), label.c_str()));
  if (E) static_cast<function_node<custom_pull<T>>*>(n.to())->pullback.self = n.to();
  if (this_thread_state.anomaly)
    if (auto const* const h = autograd_kernels.load(std::memory_order_acquire)) h->note(*n.to());
  boxed_args r;
  for (int k = 0; k < y.size(); ++k)
    r.push_back(is_floating(y[k].dtype()) && !(c->constant_results >> k & 1) ? close(y[k], *c, edge(n.to(), static_cast<std::uint32_t>(k))) : y[k]);
  return r;
}
template <class T = tensor>
boxed_args call_custom_eagerly(custom_function_ptr const& f, boxed_args const& x) {
  bool any = false;
  for (auto const& t : x) any = any || (t.defined() && t.requires_grad());
  boxed_args const y = [&] {
    no_grad const off; // AF-15
    return f->forward(x);
  }();
  if (!any || !is_grad_enabled()) return y;
  std::vector<edge> edges;
  std::vector<bool> needs;
  for (auto const& t : x) {
    edges.push_back(t.defined() ? edge(eager_history(t)) : edge());
    needs.push_back(static_cast<bool>(edges.back()));
  }
  no_grad const off;
  return record_custom<T, true>(*f, std::move(edges), x, y, needs, [&](tensor const& v, boxed_context const& c, edge const& e) {
    for (int i = 0; i < x.size(); ++i)
      if (v.is(x[i])) {
        if (!(c.dirty_operands >> i & 1)) break;
        check_write(f->name(), v);
        if (v.base().defined() && y.size() > 1) refuse_write(f->name(), "an operand marked dirty is a view, and the function has several results; give it one, or a tensor that is no view");
        rebase(v, e, i);
        return v;
      }
    // What came in as it is, and views, get handles of their own; views of operands may not be written into (AF-7, AF-13).
    bool shares = false;
    for (auto const& t : x) shares = shares || (t.defined() && !t.is_wrapped() && !v.is_wrapped() && t.shares_storage(v));
    tensor r = shares ? v.with_layout(v.where()) : v;
    if (shares) r.set_origin(view_origin::custom);
    r.set_history(e);
    return r;
  });
}
/// The next interpreter of the thread is given the call.
template <class T>
boxed_args call_custom_on_stack(custom_function_ptr const& f, boxed_args const& given) {
  layer* const top = this_thread_state.transforms.top;
  boxed_args x;
  for (auto const& t : given) x.push_back(t.defined() ? unwrap_dead(top, t) : t);
  if (!top) return call_custom_eagerly<T>(f, x);
  if (std::strcmp(top->kind, "trace") == 0) return f->forward(x);
  opened_args const o(*top, x);
  auto* const in = static_cast<dynamic_level*>(top->object);
  lowered const off;
  if (!o.any) return call_custom<>(f, o.inner);
  boxed_args r;
  if (std::strcmp(top->kind, "vmap") == 0) {
    boxed_args y = f->vmap({top->batch_size, top->random}, o.mine, o.inner);
    if (y.size() == 0) y = call_custom<>(std::make_shared<mapped_custom_function<T>>(f, o.mine, top->batch_size, top->random), o.inner);
    for (auto const& t : y) r.push_back(in->close_batched(*in, operand<tensor, bool>{t, true}));
  } else if (std::strcmp(top->kind, "jvp") == 0) {
    boxed_args const y = call_custom<>(f, o.inner);
    auto const c = f->context(o.mine, o.inner, y);
    boxed_args t;
    for (int k = 0; k < x.size(); ++k) t.push_back(o.mine[static_cast<std::size_t>(k)] && x[k].extra().defined() ? tensor(x[k].extra()) : x[k].defined() ? tensor(zeros_like(T(o.inner[k]))) : tensor());
    boxed_args const dy = c->jvp(c->saved, t);
    if (dy.size() != y.size()) throw transform_error((std::string("varve: ") + f->name() + ": jvp returned " + std::to_string(dy.size()) + " tangents for " + std::to_string(y.size()) + " results").c_str());
    for (int k = 0; k < y.size(); ++k) r.push_back(c->constant_results >> k & 1 ? y[k] : in->close_dual(*in, y[k], dy[k]));
  } else {
    boxed_args const y = call_custom<>(f, o.inner);
    if (!top->grad_mode) return y;
    std::vector<edge> edges;
    for (int k = 0; k < x.size(); ++k) edges.push_back(o.mine[static_cast<std::size_t>(k)] ? edge(x[k].history()) : edge());
    r = record_custom<T, false>(*f, std::move(edges), o.inner, y, o.mine, [&](tensor const& v, boxed_context const& c, edge const& e) {
      if (c.dirty_operands) throw transform_error((std::string("varve: ") + f->name() + ": mark_dirty works outside of transforms only; return a new value").c_str());
      return in->tracked_value(v, e);
    });
  }
  return r;
}
template <class>
boxed_args call_custom(custom_function_ptr const& f, boxed_args const& x) {
  return call_custom_on_stack<tensor>(f, x);
}

} // namespace varve::detail
