// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstring>
#include <varve/graph/builder.hpp>
#include <varve/graph/call.hpp>
#include <varve/graph/nest.hpp>
#include <varve/graph/optimize.hpp>
#include <varve/graph/plan.hpp>
#include <varve/graph/scratch.hpp>

namespace varve::loop {

template <class Make>
struct compiled;

/// Region `R` of the optimized graph of `Make`, as a program of its own.
template <class Make, int R>
struct region_of {
  constexpr graph operator()() const {
    graph const traced = Make{}();
    graph const g = optimize(traced);
    return function_of(g, R);
  }
};

template <class P, int Arguments, int Results>
void run(memory<Arguments, Results> mem);

namespace detail {
template <class P, int S, int R, int... A, int... Q>
VARVE_INLINE void run_region(auto const& mem, std::integer_sequence<int, A...>, std::integer_sequence<int, Q...>) {
  constexpr stage s = P::value.stages[S];
  using sub = compiled<region_of<typename P::make, R>>;
  loop::run<sub, sizeof...(A), sizeof...(Q)>({{address<P, P::value.slots[s.in[1] + A]>(mem)...}, {address<P, P::value.slots[s.in[2] + Q]>(mem)...}, nullptr});
}
} // namespace detail

namespace detail {
/// A loop: what is walked through and put out moves on by one row from step to step; what is carried lies in two places in turn. Outputs of steps that were not made are 0.
template <class P, int S, int... A, int... Q>
VARVE_INLINE void run_scan(auto const& mem, std::integer_sequence<int, A...>, std::integer_sequence<int, Q...>) {
  constexpr stage s = P::value.stages[S];
  constexpr call_info c = P::value.calls[s.number];
  constexpr int carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]), results = static_cast<int>(sizeof...(Q));
  constexpr bool open = c.condition >= 0, counted = c.at[0][3] != 0;
  constexpr index_t n = c.at[1][0];
  using sub = compiled<region_of<typename P::make, c.region>>;
  constexpr auto bytes = [](int slot) { return P::value.buffers[P::value.slots[slot]].elements * itemsize(P::value.buffers[P::value.slots[slot]].type); };
  constexpr index_t argument_step[] = {(A >= carried && A < walked ? bytes(s.in[1] + A) / (n ? n : 1) : 0)...};
  constexpr index_t result_step[] = {(Q >= carried ? bytes(s.in[2] + Q) / (n ? n : 1) : 0)...};
  memory<sizeof...(A), sizeof...(Q)> const all{{address<P, P::value.slots[s.in[1] + A]>(mem)...}, {address<P, P::value.slots[s.in[2] + Q]>(mem)...}, nullptr};
  void* here[] = {address<P, P::value.slots[s.in[2] + (Q < carried ? Q : 0)]>(mem)...};
  void* there[] = {address<P, P::value.slots[s.in[2] + (Q < carried ? results + Q : 0)]>(mem)...};
  if constexpr (n % 2 && !open && !counted) std::swap(here, there); // the last step leaves it where it is wanted
  ((A < carried ? void(std::memcpy(here[A < carried ? A : 0], all.argument[A], static_cast<std::size_t>(bytes(s.in[1] + A)))) : void()), ...);
  index_t steps = n;
  if constexpr (counted) steps = static_cast<index_t>(*address<P, P::value.slots[s.in[1] + walked]>(mem));
  auto const goes_on = [&]([[maybe_unused]] void* const* now, index_t k) __attribute__((always_inline)) {
    if constexpr (open) {
      using condition = compiled<region_of<typename P::make, c.condition>>;
      bool* const go = address<P, s.in[0]>(mem);
      loop::run<condition, sizeof...(A), 1>({{(A < carried ? now[A < carried ? A : 0] : all.argument[A])...}, {go}, nullptr});
      if (*go && n > 0 && k == n) refuse::loop_takes_more_steps_than_its_bound("while_loop", n);
      return *go;
    } else {
      return k < steps;
    }
  };
  auto const step = [&](void* const* from, void* const* to, index_t k) __attribute__((always_inline)) {
    index_t const row = c.at[0][2] ? steps - 1 - k : k;
    loop::run<sub, sizeof...(A), sizeof...(Q)>(
        {{(A < carried ? from[A < carried ? A : 0] : static_cast<std::byte const*>(all.argument[A]) + row * argument_step[A])...},
         {(Q < carried ? to[Q] : static_cast<std::byte*>(all.result[Q]) + row * result_step[Q])...},
         nullptr});
  };
  index_t k = 0;
  if constexpr (open || counted) { // written twice: with places that are constants what is carried may stay in registers
    while (goes_on(here, k)) {
      step(here, there, k++);
      if (!goes_on(there, k)) break;
      step(there, here, k++);
    }
    if (k % 2) std::swap(here, there);
  } else {
    for (; k < n; ++k) {
      step(here, there, k);
      std::swap(here, there);
    }
  }
  if constexpr (open || counted) {
    if (k % 2) ((Q < carried ? void(std::memcpy(all.result[Q], here[Q], static_cast<std::size_t>(bytes(s.in[2] + Q)))) : void()), ...);
    ((Q >= carried ? void(std::memset(static_cast<std::byte*>(all.result[Q]) + k * result_step[Q], 0, static_cast<std::size_t>((n - k) * result_step[Q]))) : void()), ...);
  }
}
} // namespace detail

/// Executes stage `S` of program `P`.
template <class P, int S>
VARVE_INLINE void run_stage(auto const& mem) {
  constexpr stage s = P::value.stages[S];
  if constexpr (s.kind == stage_kind::loops) {
    nest<P, s.number>::run(mem);
  } else if constexpr (s.kind == stage_kind::fill) {
    auto* p = address<P, s.out>(mem);
    for (index_t k = 0; k < number_of<P::value.buffers[s.out].elements>(mem); ++k) p[k] = static_cast<std::remove_reference_t<decltype(*p)>>(s.value);
  } else if constexpr (s.kind == stage_kind::branch) {
    constexpr call_info c = P::value.calls[s.number];
    using operands = std::make_integer_sequence<int, c.operands>;
    using results = std::make_integer_sequence<int, c.results>;
    if (*address<P, s.in[0]>(mem)) detail::run_region<P, S, c.region>(mem, operands{}, results{});
    else detail::run_region<P, S, c.region + 1>(mem, operands{}, results{});
  } else if constexpr (s.kind == stage_kind::scan) {
    constexpr call_info c = P::value.calls[s.number];
    detail::run_scan<P, S>(mem, std::make_integer_sequence<int, c.operands>{}, std::make_integer_sequence<int, c.results>{});
  } else {
    call<P, S>(mem);
  }
}

namespace detail {
template <class P, int From, class Mem, int... K>
VARVE_INLINE void run_stages([[maybe_unused]] Mem const& mem, std::integer_sequence<int, K...>) {
  (run_stage<P, From + K>(mem), ...);
}
template <class P, int From, int Count, class Mem>
VARVE_NOINLINE void run_stages_apart(Mem const& mem) {
  run_stages<P, From>(mem, std::make_integer_sequence<int, Count>{});
}
/// Many stages are several functions: compilers need more than linear time for a long one, and folds are limited to 256 elements.
template <class P, int From, int Stages, class Mem>
VARVE_INLINE void run_some([[maybe_unused]] Mem const& mem) {
  if constexpr (Stages <= 64 && From == 0) {
    run_stages<P, 0>(mem, std::make_integer_sequence<int, Stages>{});
  } else if constexpr (Stages > 0) {
    constexpr int now = Stages < 16 ? Stages : 16;
    run_stages_apart<P, From, now>(mem);
    run_some<P, From + now, Stages - now>(mem);
  }
}
} // namespace detail

/// Executes program `P` on the addresses of its arguments and results; temporaries live on the stack.
template <class P, int Arguments, int Results>
VARVE_INLINE void run(memory<Arguments, Results> mem) {
  constexpr int stages = static_cast<int>(P::value.used.stages);
  constexpr index_t bytes = P::value.workspace;
  alignas(64) std::byte arena[bytes > 0 ? bytes : 1];
  mem.arena = arena;
  detail::run_some<P, 0, stages>(mem);
}

/// ... of a program with run-time sizes, whose large temporaries lie in scratch memory.
template <class P, int Arguments, int Results>
struct sized_memory : memory<Arguments, Results> {
  index_t const* size; // the values of all expressions
  index_t const* piece;
  std::byte* scratch;
};
template <class P, int Arguments, int Results>
VARVE_INLINE void run_sized(memory<Arguments, Results> const& given, size_values<P> const& sizes) {
  constexpr int stages = static_cast<int>(P::value.used.stages);
  constexpr index_t bytes = P::value.workspace;
  alignas(64) std::byte arena[bytes > 0 ? bytes : 1];
  index_t piece[P::value.pieces + 1];
  sized_memory<P, Arguments, Results> mem{given, sizes.size, piece, nullptr};
  mem.arena = arena;
  if constexpr (P::value.pieces > 0) {
    scratch_block const scratch(static_cast<std::size_t>(sizes.lay_out(piece)));
    mem.scratch = scratch.data();
    detail::run_some<P, 0, stages>(mem);
  } else {
    detail::run_some<P, 0, stages>(mem);
  }
}

namespace detail {
/// The program in arrays of size `S`.
template <class Make, program_sizes S>
struct built {
  static constexpr static_program<S> build() { // every graph a named object: g++ 12 loses temporaries that hold storage
    graph const traced = Make{}();
    graph const better = optimize(traced);
    program p = plan(better);
    cut_long_bodies(p);
    return static_program<S>(p);
  }
  static constexpr auto value = build();
};
/// The program of a function with symbolic sizes: `Make::at(k)` traces for the `k`-th samples.
template <class Make>
concept makes_samples = requires { Make::symbols; };
template <makes_samples Make, program_sizes S>
struct built<Make, S> {
  static constexpr sized_program<S> build() {
    graph const traced[] = {Make::at(0), Make::at(1)};
    graph const better[] = {optimize(traced[0]), optimize(traced[1])};
    size_reader sizes(Make::symbols);
    list<size_guard> guards;
    if (better[0].nodes.size() != better[1].nodes.size()) return {program{}, sizes, guards, 0, sized_problem::structure};
    program p = plan(better[0], true), q = plan(better[1], true);
    cut_long_bodies(p), cut_long_bodies(q);
    detail::program_reader reader{p, q, sizes};
    bool const same = reader.run();
    if (same) detail::guards_of(better[0], better[1], p.asked, q.asked, sizes, guards);
    int const pieces = same ? detail::place_in_scratch(p) : 0;
    return {p, sizes, guards, pieces, sizes.failed && same ? sized_problem::size : reader.problem};
  }
  static constexpr auto value = build();
};
inline constexpr program_sizes usual{4096, 32768, 32768, 65536, 4096, 4096, 1024, 4096, 1024, 1024, 65536};
template <class Make, class First = built<Make, usual>>
using built_once_or_twice = std::conditional_t<usual.holds(First::value.used), First, built<Make, First::value.used>>;
} // namespace detail

/// The program of the graph that `Make{}()` computes, as a constant `value`. It is computed once when it fits a usual size, else twice; what is not used of
/// the size is zeros, which cost nothing.
template <class Make>
struct compiled : detail::built_once_or_twice<Make> {
  using make = Make;
};

} // namespace varve::loop
