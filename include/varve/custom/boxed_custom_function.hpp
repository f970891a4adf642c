// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/custom_function_call.hpp>
#include <varve/hop/boxed_cond.hpp>
#include <varve/transform/dynamic_scope.hpp>

#include <memory>

/// @file
/// Custom functions on tensors, type-erased with their contexts, and mapped.
namespace varve::detail {

/// The type-erased result of `setup_context`. Its tensors are stored separately, so that a mapped level can replace
/// them.
struct boxed_context {
  boxed_args saved;
  unsigned constant_results = 0, dirty_operands = 0;
  bool materialize = true, once = false;
  std::vector<meta> operands{};       // dtypes and shapes as the function saw them
  std::shared_ptr<void const> rest{}; // data of a type that the function knows
};
/// A variable whose address identifies one type of custom functions.
template <class F>
inline constexpr char custom_type_mark = 0;
/// A type-erased custom function with those of its arguments that are not tensors.
struct boxed_custom_function {
  virtual ~boxed_custom_function() = default;
  virtual char const* name() const = 0;
  virtual boxed_args forward(boxed_args const& x) const = 0;
  virtual boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const = 0;
  /// Returns the gradients of the operands. `jvp` returns the tangents of the results.
  virtual boxed_args backward(boxed_context const& c, boxed_args const& g) const = 0;
  virtual boxed_args jvp(boxed_context const& c, boxed_args const& t) const = 0;
  /// Runs the function's own `vmap`. Operands have the batch in front if `mapped`; all results have it in front.
  /// Returns an empty list if the function has none; the generated rule is used then.
  virtual boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const = 0;
  /// True if `forward` receives the context. Such a function works outside of transforms only.
  virtual bool has_combined_forward() const { return false; }
  /// Returns an id of the function's type for serialization (`saved_function`), or null if it cannot be serialized.
  virtual void const* type() const { return nullptr; }
};
/// Refuses such a function if the innermost transform is not a trace.
inline void require_no_transform(char const* name) {
  if (layer const* l = this_thread_state.transforms.top; l && !l->kind->is_trace())
    refuse::with<transform_error>(
        (std::string("varve: ") + name +
         " is used under a transform and must override setup_context; its forward takes no ctx then")
            .c_str());
}
using custom_function_ptr = std::shared_ptr<boxed_custom_function const>;
/// The function of a call of the operator `custom_function_call`: a custom function with all of its rules.
struct custom_forward {
  custom_function_ptr f;
  boxed_args operator()(boxed_args const& x) const { return f->forward(x); }
};
/// Returns the custom function that a call calls, or null for other operators.
inline custom_function_ptr custom_function_of(boxed_hop const& call) {
  custom_forward const* const f = call.functions.empty() ? nullptr : call.functions[0].target<custom_forward>();
  return f ? f->f : nullptr;
}
template <class = void>
higher_order_operator& custom_function_operator();
template <class = void>
boxed_args call_custom(custom_function_ptr const& f, boxed_args const& x);

/// Converts gradients to the shapes and dtypes of their operands; a gradient of a broadcast operand is summed. Throws
/// `autograd_error` for any other shape.
template <class T>
void fit_gradients(char const* name, boxed_context const& c, boxed_args& g) {
  for (int k = 0; k < g.size(); ++k) {
    if (!g[k].defined()) continue;
    meta const& m = c.operands[static_cast<std::size_t>(k)];
    if (!is_expandable(m.sizes, g[k].sizes()))
      refuse::with<autograd_error>((std::string("varve: ") + name + "Backward: a gradient of shape " +
                                    to_string(g[k].sizes()) + " was returned for argument " + std::to_string(k) +
                                    "; expected shape " + to_string(m.sizes))
                                       .c_str());
    g[k] = to(sum_to_shape(static_cast<T const&>(g[k]), m.sizes), m.type);
  }
}
template <class T>
T with_batch(T const& t, index_t n, int rank) {
  return t.dim() > rank ? t : T(expand(t, [&] {
    dims s = t.sizes();
    return s.insert(0, n);
  }()));
}

/// The batch of a mapped function on tensors. Each run opens a separate level, since a backward pass may run after the
/// level of the call has ended.
struct boxed_batch {
  std::vector<bool> mapped; // whether each operand is mapped
  index_t n;
  random_policy random;
  /// A context stored outside of the level: the context of the slices, and which of its tensors are mapped.
  struct inner_context {
    boxed_context of;
    std::vector<bool> mapped;
  };

  template <class T>
  struct opened {
    boxed_batch const& self;
    dynamic_batch_scope<>& scope;
    T put(T const& t, bool m) const { return m && t.defined() ? scope.map(t) : t; }
    operand<T, bool> take(T const& t) const {
      return t.defined() && scope.mapped(t) ? operand<T, bool>{scope.unmapped(t), true} : operand<T, bool>{t, false};
    }
    boxed_args closed(boxed_args const& x, std::vector<bool> const& flags) const {
      boxed_args r;
      for (int k = 0; k < x.size(); ++k) r.push_back(put(x[k], flags[static_cast<std::size_t>(k)]));
      return r;
    }
    boxed_args operands(boxed_args const& x) const { return closed(x, self.mapped); }
    boxed_args close(boxed_args const& x) const {
      return closed(x, std::vector<bool>(static_cast<std::size_t>(x.size()), true));
    }
    boxed_args open(boxed_args const& y) const {
      return tree_map([&](auto const& t) { return t.defined() ? materialize(take(t), scope.size()) : t; }, y);
    }
    boxed_context open_context(boxed_context const& c) const {
      boxed_context r = c;
      std::vector<bool> flags;
      r.saved = tree_map(
          [&](auto const& t) {
            auto const o = take(t);
            return flags.push_back(o.batched), o.value;
          },
          c.saved);
      inner_context in{c, std::move(flags)};
      in.of.saved = boxed_args();
      r.rest = std::make_shared<inner_context const>(std::move(in));
      return r;
    }
    boxed_context close_context(boxed_context const& c) const {
      auto const& in = *static_cast<inner_context const*>(c.rest.get());
      boxed_context r = in.of;
      r.saved = closed(c.saved, in.mapped);
      return r;
    }
    boxed_args reduce(boxed_args const& g) const {
      boxed_args r;
      for (int k = 0; k < g.size(); ++k)
        r.push_back(g[k].defined() ? T(reduced(take(g[k]), static_cast<bool>(self.mapped[static_cast<std::size_t>(k)]),
                                               scope.size()))
                                   : g[k]);
      return r;
    }
  };
  template <class Body>
  auto run(Body const& body) const {
    dynamic_batch_scope<> scope(n, random);
    return scope.run([&] { return body(opened<dependent<tensor, Body>>{*this, scope}); });
  }
};
struct custom_function_ref {
  custom_function_ptr f;
  boxed_args forward(boxed_args const& x) const { return f->forward(x); }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const {
    return f->context(needs, x, y);
  }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const { return f->backward(c, g); }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const { return f->jvp(c, t); }
};
template <class On = void>
struct mapped_custom_function final : boxed_custom_function {
  mapped_function<custom_function_ref, dependent<boxed_batch, On>> as;
  mapped_custom_function(custom_function_ptr f, boxed_batch b) : as{{std::move(f)}, std::move(b)} {}
  char const* name() const override { return as.f.f->name(); }
  boxed_args forward(boxed_args const& x) const override { return as.forward(x); }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    return as.context(needs, x, y);
  }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const override { return as.backward(c, g); }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const override { return as.jvp(c, t); }
  boxed_args vmap(vmap_info const&, std::vector<bool> const&, boxed_args const&) const override { return {}; }
  void const* type() const override { return &custom_type_mark<mapped_custom_function>; }
};

} // namespace varve::detail
