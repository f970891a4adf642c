// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/guards.hpp>
#include <varve/dispatch/higher_order.hpp>
#include <varve/interpreter/dynamic_level.hpp>

#include <vector>

namespace varve {

namespace detail {
/// A layer that passes boxed calls to a user's mode.
template <class M>
struct mode_layer : layer {
  mode_interpreter<dynamic_level, M> interpreter{};
  explicit mode_layer(M& m) : layer(own_kind, &m) {
    interpreter.self = this;
    interpreter.mode = &m;
  }
  static layer_kind const own_kind;

private:
  static tensor process(layer& l, boxed_op const& op, boxed_args const& x) {
    return static_cast<mode_layer&>(l).interpreter.process(op, x);
  }
  static boxed_args process_hop(layer& l, boxed_hop const& op, boxed_args const& x) {
    return static_cast<mode_layer&>(l).interpreter.mode->process(op, x);
  }
  static constexpr decltype(layer_kind::process_hop) hop_process() {
    if constexpr (requires { requires M::supports_higher_order_operators; }) return &process_hop;
    else return nullptr;
  }
};
template <class M>
inline constexpr layer_kind mode_layer<M>::own_kind{.name = name_of_type<M>.c_str(),
                                                    .role = layer_role::mode,
                                                    .mode_type = &name_of_type<M>,
                                                    .process = &process,
                                                    .process_hop = hop_process(),
                                                    .takes_programs = requires {requires M::takes_programs;
} // namespace detail
}; // namespace varve
[[noreturn]] VARVE_COLD inline void refuse_slot(infra_mode slot, char const* why) {
  refuse::with<dispatch_error>((std::string("varve: the ") + name(slot) + " slot " + why).c_str());
}
inline layer_stack& free_slot(infra_mode slot, bool above = false) {
  thread_state& s = this_thread_state;
  int const k = static_cast<int>(slot);
  constexpr int schema_check = static_cast<int>(infra_mode::schema_check);
  if (slot == (above ? infra_mode::fake : infra_mode::schema_check))
    refuse_slot(slot, above ? "is one of the mode stack; use infra_mode_guard"
                            : "is one of the pre-dispatch stack; use pre_dispatch_infra_guard");
  layer_stack &here = above ? s.pre_infra[k] : s.infra[k], &there = above ? s.infra[k] : s.pre_infra[k];
  if (here.top)
    refuse_slot(slot, (std::string("of the ") + (above ? "pre-dispatch" : "mode") + " stack is taken by " +
                       here.top->kind->name + "; end that mode first, or use " +
                       (above ? "pre_dispatch_guard" : "mode_guard") + " for a user mode")
                          .c_str());
  if (there.top)
    refuse_slot(slot, (std::string("is taken by ") + there.top->kind->name +
                       " on the other stack; an infra mode is either above transforms or below")
                          .c_str());
  if (above)
    for (int other = 0; other < infra_modes; ++other)
      if (s.pre_infra[other].top && (k == schema_check || other == schema_check))
        refuse_slot(slot, (std::string("cannot be taken beside ") + s.pre_infra[other].top->kind->name +
                           ": the schema check is the only pre-dispatch infra mode, or not there")
                              .c_str());
  return here;
}
} // namespace detail

/// Switches a mode on for this thread's tensor operators, factories included, until the end of the scope: `mode_guard
/// on{counting};`. The mode must outlive the guard. Guards nest. A mode is off the stack while it runs, so its own
/// operators reach the modes below. Modes see what transforms have made of a call. A higher-order operator such as
/// `cond` reaches a mode as one call if the mode declares `static constexpr bool supports_higher_order_operators =
/// true;`, or by a rule registered for it. The same mode may be on twice; it then sees each call twice.
template <class M>
class mode_guard {
public:
  explicit mode_guard(M& mode) : mode_guard(mode, this_thread_state.modes) {}
  mode_guard(mode_guard const&) = delete;
  mode_guard& operator=(mode_guard const&) = delete;

protected:
  mode_guard(M& mode, layer_stack& stack) : layer_(mode), on_(stack, layer_) {}

private:
  detail::mode_layer<M> layer_;
  pushed on_;
};
template <class M>
mode_guard(M&) -> mode_guard<M>;

/// Switches a mode on in one of the infra slots, which are called after all user modes, whatever the order of entering.
/// Throws `dispatch_error` if the slot is taken.
template <class M>
struct infra_mode_guard : mode_guard<M> {
  infra_mode_guard(infra_mode slot, M& mode) : mode_guard<M>(mode, detail::free_slot(slot)) {}
};
template <class M>
infra_mode_guard(infra_mode, M&) -> infra_mode_guard<M>;

/// Switches a mode on above transforms and autograd, where it sees calls as the program makes them.
template <class M>
struct pre_dispatch_guard : mode_guard<M> {
  explicit pre_dispatch_guard(M& mode) : mode_guard<M>(mode, this_thread_state.pre_dispatch) {}
};
template <class M>
pre_dispatch_guard(M&) -> pre_dispatch_guard<M>;

/// Switches a mode on in an infra slot above transforms and autograd, after all user modes there. The functional mode
/// is called before the proxy mode; the schema check excludes all other modes of these slots. Throws `dispatch_error`
/// if the slot is taken here or in the mode stack.
template <class M>
struct pre_dispatch_infra_guard : mode_guard<M> {
  pre_dispatch_infra_guard(infra_mode slot, M& mode) : mode_guard<M>(mode, detail::free_slot(slot, true)) {}
};
template <class M>
pre_dispatch_infra_guard(infra_mode, M&) -> pre_dispatch_infra_guard<M>;

/// Switches a mode on that sees the public calls of this thread on tensors. It sees a composite such as `softmax` as
/// one call.
template <class M>
struct function_mode_guard : mode_guard<M> {
  explicit function_mode_guard(M& mode) : mode_guard<M>(mode, this_thread_state.functions) {}
};
template <class M>
function_mode_guard(M&) -> function_mode_guard<M>;

/// Disables the modes of all stacks for the calls of this scope. They are restored in their order at its end, even
/// after an exception.
class disable_modes {
  emptied functions_{this_thread_state.functions}, pre_dispatch_{this_thread_state.pre_dispatch},
      user_{this_thread_state.modes};
  struct emptied_slots {
    explicit emptied_slots(layer_stack (&s)[infra_modes])
        : functional(s[0]), proxy(s[1]), fake(s[2]), schema_check(s[3]) {}
    emptied functional, proxy, fake, schema_check;
  };
  emptied_slots infra_{this_thread_state.infra}, pre_infra_{this_thread_state.pre_infra};
};

/// Returns the modes of this thread, the one that is called last first: infra slots, then user modes in the order in
/// which they were switched on.
template <class L = layer const> // a template, so that it costs nothing unless used
std::vector<L*> current_modes() {
  std::vector<L*> r;
  thread_state const& s = this_thread_state;
  for (int k = infra_modes - 1; k >= 0; --k)
    if (s.infra[k].top) r.push_back(s.infra[k].top);
  std::size_t const infra = r.size();
  for (L* l = s.modes.top; l; l = l->below) r.insert(r.begin() + static_cast<std::ptrdiff_t>(infra), l);
  return r;
}
/// True if any mode is on for this thread.
inline bool is_mode_active() { return this_thread_state.next_mode() != nullptr; }
/// True if a user's mode is on for this thread.
inline bool is_user_mode_active() { return this_thread_state.modes.top != nullptr; }

/// Makes the layers above modes see the operators of this scope again, as they did at the call. Used inside the handler
/// of a mode or a subclass.
class reentrant_dispatch : key_guard {
public:
  reentrant_dispatch()
      : key_guard(this_thread_state.included,
                  this_thread_state.excluded - dispatch_key_set::full().above(dispatch_key::dispatch_mode)) {}
};

} // namespace varve
