// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/sized_program.hpp>

/// @file
/// What steps of a program have in common, and what is specific to each of them. `P` is a type with `static constexpr
/// auto value`, a `static_program`.
///
/// The arguments of a shared function are the places of its operands, which are constants after inlining. Only steps of
/// many operands, and loads of constants or with run-time sizes, have a function each.
namespace varve::fusion {

/// The properties of a step that determine its code. Steps of one form share the code, whatever their operands are.
/// Compilers spend time on every function that a template creates.
struct step_form {
  step_kind kind;
  dtype type, from; // `from` of a load: the dtype in memory
  op_handle const* op;
  bool wide, apart, wraps, kept;
  int count;
  place where; // of a load, and its strides
  index_t stride[max_rank];
  int number; // of a step with code of its own, due to its load or its many operands; otherwise -1
};
/// Where a step stores its value and finds its first operands, and the value of a constant. For a load also the number
/// of the buffer, and the offset of its first element.
struct step_places {
  int slot, kept, in[3];
  double value;
  index_t from, offset;
};

namespace detail {
/// True if a load shares its code with others. Constants in the program, and memory of run-time size, are addressed by
/// separate code.
template <class P>
constexpr bool loads_alike(access const& a) {
  place const where = P::value.buffers[a.buffer].where;
  return !sized<P> && (where == place::arena || where == place::argument || where == place::result);
}
template <class P>
consteval step_form form_of(int number) {
  step const& s = P::value.steps[number];
  step_form f{s.kind, s.type, s.from, s.op, s.wide, s.apart, s.wraps, s.kept >= 0, s.count, {}, {}, -1};
  if (s.kind == step_kind::load && loads_alike<P>(P::value.accesses[s.access])) {
    access const& a = P::value.accesses[s.access];
    f.from = P::value.buffers[a.buffer].type, f.where = P::value.buffers[a.buffer].where;
    for (int l = 0; l < max_rank; ++l) f.stride[l] = a.stride[l];
    return f;
  }
  bool const own = s.kind == step_kind::op
                       ? s.count < 1 || s.count > 2 || s.wide
                       : s.kind == step_kind::load || s.kind == step_kind::records || s.kind == step_kind::index ||
                             (s.kind >= step_kind::sum && s.kind <= step_kind::dot);
  if (own) f.number = number;
  return f;
}
/// The places of `Count` steps from `First` on, whose values are stored from `now[Slot]` on.
template <class P, int First, int Slot, int Count>
struct row_of_places {
  step_places at[Count];
  consteval row_of_places() : at{} {
    for (int k = 0; k < Count; ++k) {
      step const& s = P::value.steps[First + k];
      at[k] = {Slot + k, s.kept, {s.in[0], s.in[1], s.in[2]}, s.value, 0, 0};
      if (s.kind == step_kind::load)
        at[k].from = P::value.buffers[P::value.accesses[s.access].buffer].number,
        at[k].offset = P::value.accesses[s.access].offset;
    }
  }
};
template <class P, int First, int Slot, int Count>
inline constexpr row_of_places<P, First, Slot, Count> places_of{};
} // namespace detail

} // namespace varve::fusion
