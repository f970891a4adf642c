// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/backward.hpp>

namespace varve::autograd {

/// The time at which a hook of several tensors is called: after all gradients that the backward pass will compute for
/// them, or with the first one.
enum class multi_grad_hook_mode { all, any };

/// A handle that removes the hooks of several tensors.
class multi_hook_handle {
public:
  explicit multi_hook_handle(std::vector<hook_handle> h) : handles_(std::move(h)) {}
  template <class = void>
  void remove() {
    for (auto& h : handles_) h.template remove<>();
  }

private:
  std::vector<hook_handle> handles_;
};

/// Registers `f`, which is called once in every backward pass that reaches one of the tensors. With
/// `multi_grad_hook_mode::all` it receives the list of their gradients, undefined for tensors that the pass does not
/// reach. With `any` it receives the first gradient, one tensor. If the pass fails before, `f` is not called.
template <class T = tensor, class F>
multi_hook_handle register_multi_grad_hook(std::vector<T> const& tensors, F f,
                                           multi_grad_hook_mode mode = multi_grad_hook_mode::all) {
  struct pass {
    std::uint64_t run = 0;
    std::size_t expected = 0, arrived = 0;
    std::vector<T> gradients;
  };
  struct state {
    detail::spin_lock lock;
    std::vector<pass> passes;
    std::vector<edge> at;
    F f;
    explicit state(F g) : f(std::move(g)) {}
  };
  auto const s = std::make_shared<state>(std::move(f));
  // Nodes are stored as addresses. The hooks belong to the nodes, so the addresses stay valid.
  std::vector<dependent<grad_node*, T>> nodes;
  for (auto const& t : tensors) {
    if (!t.has_history()) detail::refuse_autograd("register_multi_grad_hook", "every tensor must require grad");
    nodes.push_back(detail::gradient_edge_of(t).to());
  }
  std::vector<dependent<hook_handle, T>> handles;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    handles.push_back(tensors[k].register_hook([s, k, nodes, mode](tensor const& g) -> tensor {
      auto* const run = detail::backward_run<T>::current();
      std::vector<T> complete;
      {
        detail::spin_lock::held const on(s->lock);
        pass* p = nullptr;
        for (auto& q : s->passes)
          if (q.run == run->id()) p = &q;
        if (!p) {
          if (s->passes.size() > 16) s->passes.erase(s->passes.begin()); // passes that failed
          s->passes.push_back({run->id(), 0, 0, std::vector<T>(nodes.size())});
          p = &s->passes.back();
          for (auto* const n : nodes) p->expected += run->reaches(n);
        }
        p->gradients[k] = g;
        ++p->arrived;
        bool const now = mode == multi_grad_hook_mode::any ? p->arrived == 1 : p->arrived == p->expected;
        if (!now) return {};
        complete = p->gradients;
        if (mode == multi_grad_hook_mode::all)
          std::erase_if(s->passes, [&](auto const& q) { return q.run == run->id(); });
      }
      if constexpr (std::is_invocable_v<F&, std::vector<T> const&>) s->f(complete);
      else s->f(g);
      return {};
    }));
  return multi_hook_handle(std::move(handles));
}

/// True if the backward pass that runs on this thread will execute the node. Call it inside hooks.
template <std::same_as<node> N>
bool will_engine_execute_node(N const& n) {
  using run = detail::backward_run<dependent<tensor, N>>;
  if (!run::current()) detail::refuse_autograd("will_engine_execute_node", "no backward pass runs on this thread");
  return run::will_execute(n.get());
}

} // namespace varve::autograd
