// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/scratch_memory.hpp>
#include <varve/emit/call.hpp>
#include <varve/emit/loop_nest.hpp>
#include <varve/graph/builder.hpp>
#include <varve/pass/prepare.hpp>
#include <varve/plan/planner.hpp>
#include <varve/plan/schedule.hpp>

#include <cstring>

namespace varve::fusion {

template <class Make>
struct compiled;

/// A source of the graph of a function with symbolic sizes: `Make::at(k)` traces it for the `k`-th samples.
template <class Make>
concept makes_samples = requires { Make::symbols; };

/// Region `R` of the optimized graph of `Make`, as a separate program.
template <class Make, int R>
struct region_of {
  constexpr graph operator()() const {
    graph const traced = Make{}();
    graph const g = prepare(traced);
    return function_of(g, R);
  }
};

template <makes_samples Make, int R>
struct region_of<Make, R> {
  static constexpr int symbols = Make::symbols;
  static constexpr graph at(int point) {
    graph const traced = Make::at(point);
    graph const g = prepare(traced);
    return function_of(g, R);
  }
};

template <class P, int Arguments, int Results>
void run(memory<Arguments, Results> mem);
template <class P, int Arguments, int Results>
void run_sized(memory<Arguments, Results> const& given, size_values<P> const& sizes);

namespace detail {
/// Runs `P`, a function of a program, with the symbols of its caller.
template <class P, int Arguments, int Results>
VARVE_PART void run_inner([[maybe_unused]] auto const& mem, memory<Arguments, Results> const& given) {
  if constexpr (sized<P>) {
    static_assert(P::value.problem == sized_problem::none,
                  "varve: fuse: a branch or loop body depends on a symbolic size; give it a number in the specs");
    size_values<P> const sizes(mem.size); // the first of which are the symbols
    for (int k = 0; k < P::value.guard_count; ++k)
      if (!sizes.holds(P::value.guards[k]))
        refuse::argument_is_invalid("fuse", "a slice in a branch or loop body leaves its symbolic axis; pass an "
                                            "argument that is long enough there, or slice outside of the body");
    run_sized<P>(given, sizes);
  } else {
    run<P>(given);
  }
}
} // namespace detail

namespace detail {
template <class P, int S, int R, int... A, int... Q>
VARVE_PART void run_region(auto const& mem, std::integer_sequence<int, A...>, std::integer_sequence<int, Q...>) {
  constexpr stage s = P::value.stages[S];
  using sub = compiled<region_of<typename P::make, R>>;
  run_inner<sub, sizeof...(A), sizeof...(Q)>(
      mem,
      {{address<P, P::value.ports[s.in[1] + A]>(mem)...}, {address<P, P::value.ports[s.in[2] + Q]>(mem)...}, nullptr});
}
} // namespace detail

namespace detail {
/// Returns the bytes of the buffer in slot `Slot`.
template <class P, int Slot>
VARVE_PART index_t bytes_of([[maybe_unused]] auto const& mem) {
  constexpr buffer b = P::value.buffers[P::value.ports[Slot]];
  return number_of<b.elements>(mem) * itemsize(b.type);
}
/// True if a step is short enough to be written twice.
template <class P>
constexpr bool is_short() {
  for (std::size_t k = 0; k < P::value.used.stages; ++k)
    if (P::value.stages[k].kind != stage_kind::loops) return false;
  return P::value.used.steps <= 256;
}
/// Clears the outputs of steps that are not executed.
VARVE_PART inline void clear_rows(void* rows, index_t from, index_t to, index_t bytes) {
  std::memset(static_cast<std::byte*>(rows) + from * bytes, 0, static_cast<std::size_t>((to - from) * bytes));
}
/// Runs the steps of a loop, at most `n` unless it is `Conditional`. Returns their number. Carried values are in `here`
/// at the end, which may be exchanged with `there`. Steps are written twice if they are short or continue by a
/// condition: with constant places, carried values may stay in registers.
template <bool Conditional, bool Short, class Places>
VARVE_PART index_t walk(Places& here, Places& there, index_t n, auto const& goes_on, auto const& step) {
  index_t k = 0;
  if constexpr (Conditional) {
    while (goes_on(here, k)) {
      step(here, there, k++);
      if (!goes_on(there, k)) break;
      step(there, here, k++);
    }
    if (k % 2) std::swap(here, there);
  } else {
    if constexpr (Short)
      for (; k + 1 < n; k += 2) {
        step(here, there, k);
        step(there, here, k + 1);
      }
    for (; k < n; ++k) {
      step(here, there, k);
      std::swap(here, there);
    }
  }
  return k;
}
/// Runs the steps of a loop whose carried values, `bytes` in total, are in variables of the caller, which no result can
/// overlap. All places are constants, so that numbers stay in registers.
template <class Places>
VARVE_PART void walk_in_registers(Places const& here, Places const& there, index_t n, std::size_t bytes,
                                  auto const& step) {
  index_t k = 0;
  for (; k + 1 < n; k += 2) {
    step(here, there, k);
    step(there, here, k + 1);
  }
  if (k == n) return;
  step(here, there, k);
  std::memcpy(here[0], there[0], bytes);
}
/// Returns the offsets of some buffers that are stored one after the other, followed by the end of the last one; -1 if
/// they are more than a few numbers.
template <class P, int First, int Count>
constexpr std::array<std::ptrdiff_t, Count + 1> places_of_carried() {
  std::array<std::ptrdiff_t, Count + 1> r{};
  for (int k = 0; k < Count; ++k) {
    buffer const& b = P::value.buffers[P::value.ports[First + k]];
    bool const one = !is_run_time(b.elements) && b.elements == 1 && r[k] >= 0 && Count <= 16;
    r[k + 1] = one ? r[k] + 16 : -1;
  }
  return r;
}
/// Returns where a carried value is: in a place of the caller, or in the buffer of its slot.
template <class P, int Slot>
VARVE_PART void* place_of(auto const& mem, void* own) {
  return own ? own : address<P, P::value.ports[Slot]>(mem);
}
/// Runs a loop. Inputs per step and outputs per step advance by one row from step to step. Carried values alternate
/// between two buffers. Outputs of steps that are not executed are 0.
template <class P, int S, int... A, int... Q>
VARVE_PART void run_scan(auto const& mem, std::integer_sequence<int, A...>, std::integer_sequence<int, Q...>) {
  constexpr stage s = P::value.stages[S];
  constexpr call_info c = P::value.calls[s.number];
  constexpr int carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]),
                results = static_cast<int>(sizeof...(Q));
  constexpr bool open = c.condition >= 0, counted = c.at[0][3] != 0;
  index_t const n = number_of<c.at[1][0].number()>(mem);
  using sub = compiled<region_of<typename P::make, c.region>>;
  index_t const argument_step[] = {(A >= carried && A < walked ? bytes_of<P, s.in[1] + A>(mem) / (n ? n : 1) : 0)...};
  index_t const result_step[] = {(Q >= carried ? bytes_of<P, s.in[2] + Q>(mem) / (n ? n : 1) : 0)...};
  memory<sizeof...(A), sizeof...(Q)> const all{
      {address<P, P::value.ports[s.in[1] + A]>(mem)...}, {address<P, P::value.ports[s.in[2] + Q]>(mem)...}, nullptr};
  constexpr auto place = places_of_carried<P, s.in[2], carried>();
  constexpr bool in_registers = !open && !counted && carried > 0 && place[carried] > 0 && is_short<sub>();
  alignas(16) std::byte own[2][in_registers ? place[carried] : 1];
  void* here[] = {place_of<P, s.in[2] + (Q < carried ? Q : 0)>(mem, in_registers ? own[0] + place[Q < carried ? Q : 0]
                                                                                 : nullptr)...};
  void* there[] = {place_of<P, s.in[2] + (Q < carried ? results + Q : 0)>(
      mem, in_registers ? own[1] + place[Q < carried ? Q : 0] : nullptr)...};
  // so that the last step leaves its result in the right buffer
  if (n % 2 && !open && !counted && !in_registers) std::swap(here, there);
  ((A < carried ? void(std::memcpy(here[A < carried ? A : 0], all.argument[A],
                                   static_cast<std::size_t>(bytes_of<P, s.in[1] + A>(mem))))
                : void()),
   ...);
  index_t steps = n;
  if constexpr (counted) steps = static_cast<index_t>(*address<P, P::value.ports[s.in[1] + walked]>(mem));
  auto const goes_on = [&]([[maybe_unused]] void* const* now, index_t k) VARVE_PART {
    if constexpr (open) {
      using condition = compiled<region_of<typename P::make, c.condition>>;
      bool* const go = address<P, s.in[0]>(mem);
      run_inner<condition, sizeof...(A), 1>(
          mem, {{(A < carried ? now[A < carried ? A : 0] : all.argument[A])...}, {go}, nullptr});
      if (*go && n > 0 && k == n) refuse::loop_takes_more_steps_than_its_bound("while_loop", n);
      return *go;
    } else {
      return k < steps;
    }
  };
  auto const step = [&](void* const* from, void* const* to, index_t k) VARVE_PART {
    index_t const row = c.at[0][2] ? steps - 1 - k : k;
    run_inner<sub, sizeof...(A), sizeof...(Q)>(
        mem, {{(A < carried ? from[A < carried ? A : 0]
                            : static_cast<std::byte const*>(all.argument[A]) + row * argument_step[A])...},
              {(Q < carried ? to[Q] : static_cast<std::byte*>(all.result[Q]) + row * result_step[Q])...},
              nullptr});
  };
  auto const leave = [&]() VARVE_PART {
    ((Q < carried ? void(std::memcpy(all.result[Q], here[Q], static_cast<std::size_t>(bytes_of<P, s.in[2] + Q>(mem))))
                  : void()),
     ...);
  };
  if constexpr (in_registers) {
    walk_in_registers(here, there, n, sizeof own[0], step);
    leave();
  } else {
    index_t const k = walk<(open || counted), is_short<sub>()>(here, there, n, goes_on, step);
    if constexpr (open || counted) {
      if (k % 2) leave();
      ((Q >= carried ? clear_rows(all.result[Q], k, n, result_step[Q]) : void()), ...);
    }
  }
}
} // namespace detail

/// Executes stage `S` of program `P`.
template <class P, int S>
VARVE_PART void run_stage(auto const& mem) {
  constexpr stage s = P::value.stages[S];
  if constexpr (s.kind == stage_kind::loops) {
    nest<P, s.number>::run(mem);
  } else if constexpr (s.kind == stage_kind::fill) {
    auto* p = address<P, s.out>(mem);
    for (index_t k = 0; k < number_of<P::value.buffers[s.out].elements>(mem); ++k)
      p[k] = static_cast<std::remove_reference_t<decltype(*p)>>(s.value);
  } else if constexpr (s.kind == stage_kind::branch) {
    constexpr call_info c = P::value.calls[s.number];
    using operands = std::make_integer_sequence<int, c.operands>;
    using results = std::make_integer_sequence<int, c.results>;
    if (*address<P, s.in[0]>(mem)) detail::run_region<P, S, c.region>(mem, operands{}, results{});
    else detail::run_region<P, S, c.region + 1>(mem, operands{}, results{});
  } else if constexpr (s.kind == stage_kind::scan) {
    constexpr call_info c = P::value.calls[s.number];
    detail::run_scan<P, S>(mem, std::make_integer_sequence<int, c.operands>{},
                           std::make_integer_sequence<int, c.results>{});
  } else {
    call<P, S>(mem);
  }
}

namespace detail {
template <class P, int From, class Mem, int... K>
VARVE_PART void run_stages([[maybe_unused]] Mem const& mem, std::integer_sequence<int, K...>) {
  (run_stage<P, From + K>(mem), ...);
}
template <class P, int From, int Count, class Mem>
VARVE_NOINLINE VARVE_WHOLE void run_stages_apart(Mem const& mem) {
  run_stages<P, From>(mem, std::make_integer_sequence<int, Count>{});
}
/// Runs stages. Many stages become several functions, because compilers need more than linear time for a long one, and
/// folds are limited to 256 elements.
template <class P, int From, int Stages, class Mem>
VARVE_PART void run_some([[maybe_unused]] Mem const& mem) {
  if constexpr (Stages <= 64 && From == 0) {
    run_stages<P, 0>(mem, std::make_integer_sequence<int, Stages>{});
  } else if constexpr (Stages > 0) {
    constexpr int now = Stages < 16 ? Stages : 16;
    run_stages_apart<P, From, now>(mem);
    run_some<P, From + now, Stages - now>(mem);
  }
}
} // namespace detail

/// Executes program `P` on the addresses of its arguments and results. Temporaries are on the stack if they need at
/// most `most_on_stack` bytes.
template <class P, int Arguments, int Results>
VARVE_PART void run(memory<Arguments, Results> mem) {
  constexpr int stages = static_cast<int>(P::value.used.stages);
  temporaries<static_cast<std::size_t>(P::value.workspace)> arena;
  mem.arena = arena.data();
  detail::run_some<P, 0, stages>(mem);
}

/// The memory of a program with run-time sizes, whose large temporaries are in scratch memory.
template <class P, int Arguments, int Results>
struct sized_memory : memory<Arguments, Results> {
  index_t const* size; // the values of all expressions
  index_t const* piece;
  std::byte* scratch;
};
template <class P, int Arguments, int Results>
VARVE_WHOLE void run_sized(memory<Arguments, Results> const& given, size_values<P> const& sizes) {
  constexpr int stages = static_cast<int>(P::value.used.stages);
  temporaries<static_cast<std::size_t>(P::value.workspace)> arena;
  index_t piece[P::value.pieces + 1];
  sized_memory<P, Arguments, Results> mem{given, sizes.size, piece, nullptr};
  mem.arena = arena.data();
  if constexpr (P::value.pieces > 0) {
    scratch_block const scratch(static_cast<std::size_t>(sizes.lay_out(piece)));
    mem.scratch = scratch.data();
    detail::run_some<P, 0, stages>(mem);
  } else {
    detail::run_some<P, 0, stages>(mem);
  }
}

/// The maximum number of operators in a traced function. Tracing unrolls C++ loops: 1000 steps of five operators take a
/// compiler 10 seconds, 3000 steps minutes.
inline constexpr int most_operators = 10000;

namespace detail {
/// A named constant, so that compilers print the number of operators if it is exceeded.
template <int OperatorsWereTraced>
inline constexpr bool is_short_enough = OperatorsWereTraced <= most_operators;

/// Array sizes for programs of few operators, and for others. Compilers spend time and memory on each element of a
/// constant's arrays, used or not.
inline constexpr program_sizes small_program{256, 2048, 2048, 4096, 256, 256, 64, 256, 64, 64, 4096},
    usual{4096, 32768, 32768, 65536, 4096, 4096, 1024, 4096, 1024, 1024, 65536};
/// The maximum number of operators of a function that is planned in arrays of size `S`.
template <program_sizes S>
inline constexpr int most_operators_in = S.is(small_program) ? 256 : most_operators;

/// The program in arrays of size `S`.
template <class Make, program_sizes S>
struct built {
  // every graph is a named object: g++ 12 loses temporaries that hold storage
  static constexpr static_program<S> build() {
    graph const traced = Make{}();
    program p;
    p.traced_operators = traced.operations();
    p.writes_arguments = has_mutation(traced);
    // otherwise refused later, where the message is short
    if (p.traced_operators <= most_operators_in<S> && !p.writes_arguments) {
      graph const better = prepare(traced);
      p = plan(better);
      schedule(p), cut_long_bodies(p);
    }
    return static_program<S>(p);
  }
  static constexpr auto value =
      build(); // varve: at a limit use scan for long loops; -fconstexpr-steps=1000000000
               // (clang), or -fconstexpr-ops-limit=1000000000 -fconstexpr-loop-limit=10000000 (g++)
};
/// The program with symbolic sizes in arrays of size `S`.
template <makes_samples Make, program_sizes S>
struct built<Make, S> {
  static constexpr sized_program<S> build() {
    graph const traced[] = {Make::at(0), Make::at(1)};
    index_t const* names = nullptr;
    if constexpr (requires { Make::names; }) names = Make::names.names;
    size_reader sizes(Make::symbols, names);
    list<size_guard> guards;
    if (has_mutation(traced[0])) {
      program p;
      p.writes_arguments = true; // refused later, where the message is short
      return {p, sizes, guards, 0, sized_problem::writes};
    }
    if (S.is(small_program) && traced[0].operations() > most_operators_in<S>) {
      program p;
      p.traced_operators = traced[0].operations();
      return {p, sizes, guards, 0, sized_problem::none};
    }
    graph const better[] = {prepare(traced[0]), prepare(traced[1])};
    if (better[0].nodes.size() != better[1].nodes.size())
      return {program{}, sizes, guards, 0, sized_problem::structure};
    program p = plan(better[0], true), q = plan(better[1], true);
    schedule(p), schedule(q), cut_long_bodies(p), cut_long_bodies(q);
    detail::program_reader reader{p, q, sizes};
    bool const same = reader.run();
    if (same) {
      guard_reader asks{sizes, guards};
      asks.asked(p.asked, q.asked);
      asks.graphs(better[0], better[1]);
    }
    int const pieces = same ? detail::place_in_scratch(p) : 0;
    return {p, sizes, guards, pieces, sizes.failed && same ? sized_problem::size : reader.problem};
  }
  static constexpr auto value =
      build(); // varve: at a limit use scan for long loops; -fconstexpr-steps=1000000000
               // (clang), or -fconstexpr-ops-limit=1000000000 -fconstexpr-loop-limit=10000000 (g++)
};
/// True if the program was computed. Otherwise the compiler has reported the reason, and dependent code adds no
/// message.
template <class Built>
inline constexpr bool computed = requires { typename std::bool_constant<(Built::value.workspace >= 0)>; };
/// The program `First` if its arrays are large enough, otherwise the same program in arrays of its own size.
template <class Make, class First, program_sizes S, bool = computed<First>>
struct fitted : std::conditional_t<S.holds(First::value.used), First, built<Make, First::value.used>> {};
template <class Make, class First, program_sizes S>
struct fitted<Make, First, S, false> {}; // has no `value`, since it was not computed
/// The program in arrays that suit the number of its operators. It is planned once if these are large enough.
template <class Make, class Few = built<Make, small_program>>
struct suited : fitted<Make, Few, small_program> {};
template <class Make, class Few>
  requires(Few::value.traced_operators > most_operators_in<small_program>)
struct suited<Make, Few> : fitted<Make, built<Make, usual>, usual> {};

template <class Program, bool = computed<Program>>
struct accepted : Program {
  static_assert(!Program::value.writes_arguments,
                "varve: fuse: the function writes into its argument; write into a clone of it, and return that");
  // qualified, so that clang 14 prints the number
  static_assert(detail::is_short_enough<Program::value.traced_operators>,
                "varve: fuse: more than 10000 operators were traced, since loops of C++ are unrolled; write a long one "
                "as scan or while_loop");
};
template <class Program>
struct accepted<Program, false> {};

template <class Make, bool = computed<built<Make, small_program>>>
struct compiled_or_not : accepted<suited<Make>> {};
template <class Make>
struct compiled_or_not<Make, false> {};
} // namespace detail

/// The program of the graph that `Make{}()` computes, as a constant `value`. A graph of many operators is traced twice;
/// a program that is large for its number of operators is planned twice.
template <class Make>
struct compiled : detail::compiled_or_not<Make> {
  using make = Make;
  /// Executes the program.
  template <int Arguments, int Results>
  static VARVE_PART void run(memory<Arguments, Results> const& mem) {
    fusion::run<compiled>(mem);
  }
};

} // namespace varve::fusion
