// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Runs a program in stacks of ways and compares what they give. A refusal is allowed, if it leaves everything as it
/// was; where stacks of one meaning run, they must agree.
#include "generate.hpp"
#include "stacks.hpp"

#include <cmath>
#include <map>
#include <utility>

namespace random_programs {

/// What a call gave.
struct outcome {
  values results;
  std::string refused;                    // the text of the refusal
  std::string broken;                     // what went wrong beside the results
  bool wrote = false;                     // into an input
  std::vector<std::vector<double>> after; // what the inputs hold
  std::string versions;                   // of which inputs the version is another one, a letter each
  std::string shared;                     // with which inputs, and results before it, each result shares memory
};
/// What is counted.
struct tally {
  long programs = 0, stacks = 0, comparisons = 0, refused = 0, differences = 0;
  std::map<std::string, long> refusals; // by their texts, without numbers
};
/// Two stacks that do not agree, or one that broke something.
struct difference {
  stack ways;
  std::string what;
  explicit operator bool() const { return !what.empty(); }
};

inline bool thread_is_clean() {
  varve::thread_state const& s = varve::this_thread_state;
  return s.quiet() && !s.transforms.top && !s.modes.top && s.grad_mode && !s.saved_hooks;
}
inline void clean_thread() {
  varve::thread_state fresh{};
  fresh.next_id = varve::this_thread_state.next_id;
  fresh.next_node = varve::this_thread_state.next_node;
  varve::this_thread_state = fresh;
}
/// Numbers and addresses out of a message.
inline std::string without_numbers(std::string s) {
  std::string r;
  for (char c : s.substr(0, 150))
    if (!(c >= '0' && c <= '9')) r += c;
    else if (r.empty() || r.back() != '#') r += '#';
  return r;
}

// ---- arguments ----------------------------------------------------------------------------------------------------
/// Lanes that differ, as one tensor.
inline tensor widened(tensor const& t, index_t lanes, sample::memory memory) {
  dims sizes = t.sizes();
  sizes.insert(0, lanes);
  tensor const r = sample::blank(sizes, t.dtype(), memory);
  index_t const n = t.numel();
  static double const factors[] = {1, -0.625, 0.375}; // of either sign
  for (index_t k = 0; k < lanes; ++k)
    for (index_t j = 0; j < n; ++j) {
      double v = sample::element(t, j);
      if (varve::is_floating(t.dtype())) v = v * factors[k % 3];
      else if (t.dtype() == dtype::bool_) v = k % 2 ? 1 - v : v;
      else v = k % 2 ? 2 - std::fmod(v, 3) : v;
      sample::set(r, k * n + j, v);
    }
  return r;
}
/// What of a meaning brings lanes.
inline std::string lanes_of(std::string meaning) {
  std::erase_if(meaning, [](char c) { return c != 'B' && c != 'F'; });
  return meaning;
}
/// Arguments for a meaning: each B or F brings a dimension.
inline values arguments_for(std::string const& meaning, program const& p, given const& g) {
  values v = g.arguments;
  for (auto c = meaning.rbegin(); c != meaning.rend(); ++c)
    for (std::size_t k = 0; k < v.size(); ++k)
      if (*c == 'B' || (*c == 'F' && k == 0))
        v[k] = widened(v[k], 2 + (p.count + static_cast<int>(lanes_of(meaning).size())) % 2,
                       p.inputs[static_cast<std::size_t>(g.argument_ids[k])].memory);
  return v;
}

// ---- a call -------------------------------------------------------------------------------------------------------
/// What inputs hold, and how often they were written into.
struct held {
  std::vector<std::vector<double>> elements;
  std::vector<std::uint64_t> versions;
  explicit held(values const& v) {
    for (tensor const& t : v) elements.push_back(sample::elements(t)), versions.push_back(t.version());
  }
  held() = default;
};
inline bool same_elements(std::vector<double> const& a, std::vector<double> const& b, double tolerance) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!(std::fabs(a[k] - b[k]) <= tolerance * (1 + std::fabs(b[k]))) && a[k] != b[k] &&
        !(a[k] != a[k] && b[k] != b[k]))
      return false;
  return true;
}
/// Does it write into values?
inline bool writes(block const& b) {
  return std::any_of(b.code.begin(), b.code.end(), [](statement const& s) {
    return s.op->of == kind::in_place || std::any_of(s.bodies.begin(), s.bodies.end(), writes);
  });
}
/// With which inputs, and results before it, each result shares memory.
inline std::string shared_memory(values const& inputs, values const& results, bool writes) {
  std::string r;
  for (std::size_t k = 0; k < results.size(); ++k) {
    r += r.empty() ? "" : ", ";
    for (std::size_t j = 0; j < inputs.size(); ++j)
      if (results[k].numel() > 0 && results[k].shares_storage(inputs[j])) r += 'i' + std::to_string(j);
    for (std::size_t j = 0; j < k && !writes; ++j) // what is written becomes a value of its own in graphs
      if (results[k].numel() > 0 && results[k].shares_storage(results[j])) r += 'r' + std::to_string(j);
  }
  return r;
}
/// Told of each stack before it runs, so that a crash has a name.
inline void (*at_work)(stack const&) = [](stack const&) {};
/// Calls a program in a stack of ways, on these arguments.
inline outcome call(program const& p, given const& g, stack const& s, values const& arguments) {
  at_work(s);
  outcome r;
  values all = arguments;
  all.insert(all.end(), g.captured.begin(), g.captured.end());
  held const before(all);
  varve::manual_seed(11);
  try {
    r.results = applied(s, as_function(p, g))(arguments);
    for (tensor const& t : r.results)
      if (!t.defined()) r.broken = "a result is undefined";
      else if (t.is_wrapped()) r.broken = "a result is a value of a transform that ended";
  } catch (varve::error const& e) { r.refused = e.what(); } catch (std::exception const& e) {
    r.broken = std::string("an exception that is not varve's: ") + e.what();
  }
  if (!thread_is_clean()) r.broken = "the thread's stacks are not as before", clean_thread();
  held const now(all);
  r.after = now.elements;
  r.wrote = now.versions != before.versions;
  for (std::size_t k = 0; k < all.size(); ++k) r.versions += now.versions[k] == before.versions[k] ? '-' : 'w';
  if (r.broken.empty()) r.shared = shared_memory(all, r.results, writes(p.body));
  for (tensor& t : r.results)
    if (r.broken.empty()) t = as_real(t);
  for (std::size_t k = 0; k < all.size() && !p.hides; ++k)
    if (!same_elements(before.elements[k], now.elements[k], 0) && now.versions[k] == before.versions[k])
      r.broken = "an input was written into without a new version";
  return r;
}

// ---- comparisons --------------------------------------------------------------------------------------------------
/// Does it convert to float32, or to what that comes of beside a number?
inline bool uses_float32(block const& b) {
  for (statement const& s : b.code) {
    if (std::string(s.op->name) == "to" && s.at[0][0] != static_cast<index_t>(dtype::float64)) return true;
    for (block const& f : s.bodies)
      if (uses_float32(f)) return true;
  }
  return false;
}
/// Is a value divided by itself? The derivative is 0 but for rounding, which is one way here and another there: a sign
/// of it says nothing.
inline bool cancels(block const& b) {
  for (statement const& s : b.code) {
    if (std::string(s.op->name) == "div" && s.operands[0] == s.operands[1]) return true;
    for (block const& f : s.bodies)
      if (cancels(f)) return true;
  }
  return false;
}
inline bool is_coarse(program const& p) {
  bool coarse = uses_float32(p.body);
  for (input const& in : p.inputs) coarse = coarse || in.type != dtype::float64; // integers promote to float32
  return coarse;
}
inline bool has_halves(program const& p) {
  return std::any_of(p.inputs.begin(), p.inputs.end(),
                     [](input const& in) { return in.type == dtype::float16 || in.type == dtype::bfloat16; });
}
/// Where two results differ by more than a tolerance for each element; "" if nowhere. Derivatives may be of the dtype
/// of the argument or of the result: `any_float`.
template <class Tolerance>
std::string apart(values const& a, values const& b, bool any_float, Tolerance const& tolerance) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " results, but " + std::to_string(b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    std::string const at = "result " + std::to_string(k) + ": ";
    bool const floats = varve::is_floating(a[k].dtype()) && varve::is_floating(b[k].dtype());
    if (!(a[k].sizes() == b[k].sizes()) || (a[k].dtype() != b[k].dtype() && !(floats && any_float)))
      return at + name(a[k].dtype()) + to_string(a[k].sizes()) + ", but " + name(b[k].dtype()) +
             to_string(b[k].sizes());
    for (index_t e = 0; e < a[k].numel(); ++e) {
      double const x = sample::element(a[k], e), y = sample::element(b[k], e);
      if (x == y || (x != x && y != y) || std::fabs(x - y) <= tolerance(k, e, y)) continue;
      return at + "element " + std::to_string(e) + " is " + std::to_string(x) + ", but " + std::to_string(y);
    }
  }
  return "";
}
/// A tensor of other elements, laid out as it is, unless it shows some more than once.
template <class F>
tensor changed(tensor const& t, F const& f) {
  for (int k = 0; k < t.dim(); ++k)
    if (t.strides()[k] == 0) return t;
  tensor const r = vv::detail::copy_as_laid_out(t);
  for (index_t k = 0; k < t.numel(); ++k) sample::set(r, k, f(k, sample::element(t, k)));
  return r;
}
/// Arguments moved a little: what a result changes by is no difference.
inline values nudged(values v, double by, bool zeros) {
  for (tensor& t : v) {
    if (!varve::is_floating(t.dtype())) continue;
    t = changed(t, [&](index_t k, double e) { return e * (1 + (k % 2 ? by : -by)) + (zeros ? by * 1e-3 : 0); });
  }
  return v;
}
/// How many derivatives a stack takes.
inline int order(stack const& s) {
  int n = 0;
  for (way const* w : s) n += w->letter == 'G' || w->letter == 'J';
  return n;
}
/// A call with inputs of its own.
inline outcome call_anew(program const& p, stack const& s) {
  given const g = inputs_of(p);
  return call(p, g, s, arguments_for(meaning(s), p, g));
}
/// Is a result of a statement, or a derivative, first or second, infinite or none here? Then a cotangent 0 that comes
/// to it becomes NaN, and whether one comes is open: a result that nobody reads, an operand that a branch does not use.
inline bool is_infinite(statement const& s, values x) {
  if (s.op->of == kind::carrier || s.op->of == kind::random) return false;
  for (tensor& t : x)
    while (t.is_wrapped()) t = t.inner();
  for (std::size_t k = 0; k < x.size(); ++k) {
    bool const complex = varve::is_complex(x[k].dtype());
    if (!varve::is_floating(x[k].dtype()) && !complex) continue;
    auto const f = [&](tensor const& t) {
      values y = x;
      for (std::size_t j = 0; j < y.size(); ++j) y[j] = vv::clone(j == k ? t : x[j]);
      if (complex) y[k] = vv::view_as_complex(y[k]);
      return contracted(s.op->run(y, s, {}));
    };
    auto const g = [&](tensor const& t) { return contracted({vv::grad(f)(t)}); };
    try {
      tensor const at = as_real(x[k]);
      for (tensor const& d : {f(at), tensor(vv::grad(f)(at)), tensor(vv::grad(g)(at))})
        for (double e : sample::elements(d))
          if (!std::isfinite(e)) return true;
    } catch (varve::data_dependent_error const&) {
      return true;                              // of a fake value, it may be
    } catch (varve::error const&) { continue; } // without the lanes that transforms see
  }
  return false;
}
/// Is there a carrier of one of these names?
inline bool carries(block const& b, std::vector<std::string> const& names) {
  for (statement const& s : b.code) {
    if (std::find(names.begin(), names.end(), s.op->name) != names.end()) return true;
    for (block const& f : s.bodies)
      if (carries(f, names)) return true;
  }
  return false;
}
/// Where one is infinite or none, products with 0 differ by their order: both become 0 there. An infinity that the
/// reference does not have remains, unless all are left out.
inline void leave_out_infinite(values& a, values& b, bool all) {
  for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    if (!(a[k].sizes() == b[k].sizes())) continue;
    a[k] = vv::clone(a[k]), b[k] = vv::clone(b[k]);
    for (index_t e = 0; e < a[k].numel(); ++e)
      if (!std::isfinite(sample::element(a[k], e)) || (all && !std::isfinite(sample::element(b[k], e))))
        sample::set(a[k], e, 0), sample::set(b[k], e, 0);
  }
}
/// ... and what mode changes the values that it meets.
inline std::string lanes_and_modes_of(std::string meaning) {
  std::erase_if(meaning, [](char c) { return c != 'B' && c != 'F' && c != 'M'; });
  return meaning;
}
/// Is a statement given values of float32, or whole numbers that may become such?
inline bool is_single(statement const&, values x) {
  return std::any_of(x.begin(), x.end(), [](tensor const& t) { return varve::part_type(t.dtype()) != dtype::float64; });
}
/// Is a statement a normalization of rows that hardly vary? Each derivative of it multiplies what was rounded by up to
/// 316, for the square root of an eps of 1e-5 (moving the arguments leaves a row as even as it is).
inline bool is_even(statement const& s, values x) {
  if (std::string_view(s.op->name) != "layer_norm") return false;
  tensor t = x[0];
  while (t.is_wrapped()) t = t.inner();
  index_t const n = t.dim() ? t.sizes()[t.dim() - 1] : varve::extent(1);
  for (index_t first = 0; first + n <= t.numel() && n > 0; first += n) {
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (index_t e = first; e < first + n; ++e) {
      double const v = sample::element(t, e);
      least = std::min(least, v), most = std::max(most, v);
    }
    if (most - least < 1e-2) return true;
  }
  return false;
}
/// Does a statement tell 0 and -0 apart, and is given one? Sums and derivatives of fused programs may have the other
/// (docs/departures.md).
inline bool tells_zeros_apart(statement const& s, values x) {
  std::string_view const name = s.op->name;
  bool r = false;
  for (std::string_view const n :
       {"reciprocal", "div", "remainder", "floor_divide", "atan2 anywhere", "copysign", "angle"})
    r = r || name == n;
  return r && std::any_of(x.begin(), x.end(), [](tensor const& t) {
           tensor const n = as_real(t);
           bool any = false;
           for (index_t e = 0; varve::is_floating(n.dtype()) && e < n.numel(); ++e)
             any = any || sample::element(n, e) == 0;
           return any;
         });
}
inline bool fuses(stack const& s) {
  return std::any_of(s.begin(), s.end(), [](way const* w) {
    std::string_view const name = w->name;
    return name.find("fuse") != name.npos || name.find("compile") != name.npos;
  });
}
/// Does a program meet such a statement, in the branches that it takes?
inline bool meets(bool (*such)(statement const&, values), program const& p, std::string const& meaning) {
  bool met = false;
  listener = [&met, such](statement const& s, values const& x) {
    if (met) return;
    auto const mine = std::exchange(listener, nullptr);
    varve::thread_state const at_work = varve::this_thread_state; // whatever transforms the program is in
    clean_thread();
    met = such(s, x);
    varve::this_thread_state = at_work;
    listener = mine;
  };
  call_anew(p, reference(lanes_and_modes_of(meaning)));
  listener = nullptr;
  return met;
}
/// Does one stack give what another does? The second time with the tolerance that the program's own condition asks for.
/// (What cancels of large and small values, which are among special ones, leaves an error that moving the arguments may
/// not show: x / x is 1 wherever x is.)
inline std::string compared(program const& p, stack const& reference, stack const& ways, values right, values found) {
  double base = has_halves(p) ? 3e-2 : is_coarse(p) ? 2e-4 : p.special ? 1e-5 : 1e-9;
  bool const derivatives = order(ways) > 0 || carries(p.body, {"grad", "jvp"});
  auto const differ = [&] {
    return apart(found, right, derivatives, [&](std::size_t, index_t, double y) { return base * (1 + std::fabs(y)); });
  };
  if (order(ways) > 0) leave_out_infinite(right, found, false);
  std::string first = differ();
  if (derivatives && !first.empty() && meets(is_infinite, p, meaning(ways))) {
    leave_out_infinite(right, found, true);
    first = differ();
  }
  if (!first.empty() && base < 2e-4 && meets(is_single, p, meaning(ways))) {
    base = 2e-4;
    first = differ();
  }
  if (!first.empty() && base < 1e-5 && derivatives && meets(is_even, p, meaning(ways))) {
    base = 1e-5;
    first = differ();
  }
  if (first.empty() || (fuses(ways) && meets(tells_zeros_apart, p, meaning(ways)))) return "";
  values moved[2];
  for (int k = 0; k < 2; ++k) {
    given const g = inputs_of(p);
    values const v = nudged(arguments_for(meaning(reference), p, g), (k ? 1 : -1) * base * 1e-2, !p.special);
    outcome const r = call(p, g, reference, v);
    if (!r.refused.empty() || r.results.size() != right.size()) return first;
    moved[k] = r.results;
  }
  return apart(found, right, derivatives, [&](std::size_t k, index_t e, double y) {
    if (moved[0][k].numel() != right[k].numel() || moved[1][k].numel() != right[k].numel()) return 0.0;
    double const change =
        std::max(std::fabs(sample::element(moved[0][k], e) - y), std::fabs(sample::element(moved[1][k], e) - y));
    return base * (1 + std::fabs(y)) + (change == change ? 100 * change : HUGE_VAL);
  });
}
/// The gradient against differences along one direction.
inline std::string against_differences(program const& p, given const& g, values const& gradient) {
  auto const at = [&](double step) {
    values v = g.arguments;
    v[0] = changed(v[0], [&](index_t k, double e) { return e + step * std::cos(static_cast<double>(k)); });
    return sample::element(contracted(call(p, g, {}, v).results), 0);
  };
  double const one = (at(1e-4) - at(-1e-4)) / 2e-4, two = (at(2e-4) - at(-2e-4)) / 4e-4;
  double along = 0;
  for (index_t k = 0; k < gradient[0].numel(); ++k)
    along += sample::element(gradient[0], k) * std::cos(static_cast<double>(k));
  double const bound = 1e-5 * (1 + std::fabs(along)) + 10 * std::fabs(one - two);
  if (std::fabs(one - along) <= bound || one != one) return "";
  return "the gradient along a direction is " + std::to_string(along) + ", differences give " + std::to_string(one);
}
/// Is it a way that can agree for this program? Forward mode is not stopped by `no_grad`, and multiplies
/// others by infinity.
inline bool serves(program const& p, way const& w, std::string const& meaning) {
  if ((p.hides || p.lies) && (w.letter != 'I' || w.is(lanes))) return false;
  if (meaning.find('M') != std::string::npos && w.is(hooks)) return false; // runs again later
  if (p.draws && (w.is(again) || w.letter == 'B' || w.letter == 'F')) return false;
  if (w.is(lifts))
    for (input const& in : p.inputs)
      if (in.captured) return false;
  return !((p.special || p.turns_off) && w.is(forward));
}
/// How large a program becomes in a stack that traces it, at the worst: unrolled calls, lanes, traces of traces.
inline int growth(stack const& s) {
  int times = 1;
  bool traced = false;
  for (way const* w : s) {
    bool const graph = w->is(traces | lifts), lanes = (w->letter == 'B' || w->letter == 'F') && w->is(again);
    times *= w->is(unrolls) ? 8 : lanes ? 3 : graph ? 2 : 1;
    traced = traced || graph;
  }
  return traced ? times : 1;
}
/// A random stack of a meaning; empty if there is none.
inline stack draw_stack(numbers& draw, program const& p, std::string const& meaning) {
  std::string letters;
  for (char c : meaning) {
    while (draw.once_in(3)) letters += 'I';
    letters += c;
  }
  while (draw.once_in(3)) letters += 'I';
  if (letters.empty()) letters = "I";
  stack s;
  auto const with = [&s](way const& w) {
    stack r = s;
    r.push_back(&w);
    return r;
  };
  for (char c : letters) {
    std::vector<way const*> some;
    for (way const& w : all_ways())
      if (w.letter == c && serves(p, w, meaning) &&
          std::all_of(s.begin(), s.end(), [&](way const* around) { return goes_in(w, *around); }) &&
          growth(with(w)) <= 64)
        some.push_back(&w);
    if (some.empty()) return {};
    s.push_back(draw.of(some));
  }
  return s;
}

inline bool calls_again(stack const& s) {
  for (way const* w : s)
    if (w->is(again)) return true;
  return false;
}
/// One program in one stack against the reference of its meaning.
inline difference check_stack(program const& p, stack const& s, tally* t = nullptr) {
  stack const first = reference(meaning(s));
  outcome const right = call_anew(p, first);
  if (!right.broken.empty()) return {first, right.broken};
  if ((right.wrote || p.hides) && (calls_again(s) || !meaning(s).empty()))
    return {}; // it would write as often as it is called
  outcome const found = call_anew(p, s);
  if (t) ++t->stacks;
  if (!found.broken.empty()) return {s, found.broken};
  if (!found.refused.empty()) {
    if (t) ++t->refused, ++t->refusals[without_numbers(found.refused)];
    // What a function of the user's wrote before it was refused stays written.
    if (found.wrote && !right.wrote && !carries(p.body, {"compile"}) &&
        !call_anew(p, reference(lanes_of(meaning(s)))).wrote)
      return {s, "a refused call wrote into an input"};
    return {};
  }
  if (!right.refused.empty() || cancels(p.body)) return {};
  if (t) ++t->comparisons;
  for (std::size_t k = 0; k < found.after.size(); ++k)
    if (!same_elements(found.after[k], right.after[k], is_coarse(p) ? 1e-3 : 1e-7))
      return {s, "input " + std::to_string(k) + " holds something else afterwards"};
  if (p.hides && found.versions != right.versions)
    return {s, "versions changed: " + found.versions + ", right is " + right.versions};
  // What a function gives through an operator with functions is open: ahead of time it is a copy.
  bool const calls = std::any_of(p.body.code.begin(), p.body.code.end(),
                                 [](statement const& st) { return st.op->of == kind::carrier; });
  bool const keeps = !calls && std::all_of(s.begin(), s.end(), [&](way const* w) {
    return w->is(sharing) && !((right.wrote || p.hides) && w->is(copies));
  });
  if (keeps && found.shared != right.shared)
    return {s, "results share memory: " + found.shared + ", right is " + right.shared};
  std::string const what = compared(p, first, s, right.results, found.results);
  return what.empty() ? difference{} : difference{s, what};
}
/// The environment of a program's inputs.
inline environment start_of(program const& p) {
  given const g = inputs_of(p);
  environment e(static_cast<std::size_t>(p.count));
  for (std::size_t k = 0; k < g.arguments.size(); ++k) e[static_cast<std::size_t>(g.argument_ids[k])] = g.arguments[k];
  for (std::size_t k = 0; k < g.captured.size(); ++k) e[static_cast<std::size_t>(g.captured_ids[k])] = g.captured[k];
  return e;
}
/// Comparisons and clamps of integers beside numbers of any size, by plain C++.
inline std::string against_plain_numbers(statement const& s, std::vector<double> const& x, environment const& e) {
  std::string const name = s.op->name;
  for (std::size_t k = 0; k < x.size(); ++k) {
    double const n = std::trunc(s.numbers[0]), m = std::trunc(s.numbers[1]);
    double right = name == "less than a number" ? x[k] < n : std::min(std::max(x[k], n), m);
    tensor const& y = e[static_cast<std::size_t>(s.results[0])];
    if (y.dtype() == dtype::uint8) right = std::min(std::max(right, 0.0), 255.0); // the nearest that it holds
    if (y.dtype() == dtype::int8) right = std::min(std::max(right, -128.0), 127.0);
    if (y.dtype() == dtype::int16) right = std::min(std::max(right, -0x1p15), 0x1p15 - 1);
    if (y.dtype() == dtype::int32) right = std::min(std::max(right, -0x1p31), 0x1p31 - 1);
    double const found = sample::element(y, static_cast<index_t>(k));
    if (x[k] == x[k] && std::fabs(found - right) > 1e-6 * std::fabs(right))
      return name + " gives " + std::to_string(found) + ", right is " + std::to_string(right);
  }
  return "";
}
/// Is the result a value of its own? Views are not, nor what gives its operand where there is nothing to do.
inline bool gives_copies(statement const& s) {
  std::string_view const name = s.op->name;
  bool const calls = s.op->of == kind::carrier || s.op->of == kind::in_place || s.op->of == kind::view;
  return !calls && name != "to" && name != "detach";
}
/// What each statement must be by itself, whatever stacks agree about: right, and in memory of its own.
inline std::string against_rules(program const& p) {
  environment e = start_of(p);
  for (statement const& s : p.body.code) {
    std::string const name = s.op->name;
    std::vector<double> x;
    if (name == "less than a number" || name == "clamp to numbers")
      x = sample::elements(e[static_cast<std::size_t>(s.operands[0])]);
    values const operands = operands_of(s, e);
    try {
      run(s, e);
    } catch (varve::error const&) {
      if (p.draws) return ""; // these numbers may be no indices
      throw;
    }
    if (std::string const what = against_plain_numbers(s, x, e); !what.empty()) return what;
    if (!gives_copies(s)) continue;
    for (int const r : s.results)
      for (tensor const& o : operands)
        if (tensor const& y = e[static_cast<std::size_t>(r)]; y.numel() > 0 && y.shares_storage(o))
          return name + " gives memory of its operand";
  }
  return "";
}
/// ... in all stacks of some seed.
inline difference check_program(program const& p, std::uint64_t seed, tally& t) {
  static std::vector<std::string> const meanings{"",   "B",  "G",   "J",   "F",  "GB", "BG", "GF",  "FG",
                                                 "BJ", "JB", "GG",  "JG",  "BB", "M",  "MG", "BGB", "MB",
                                                 "G",  "B",  "BGG", "FBG", "JJ", "",   "",   "G"};
  numbers draw(seed ^ 0x5bd1e995);
  ++t.programs;
  if (std::string const what = against_rules(p); !what.empty()) return {{}, what};
  for (int k = 0; k < 8; ++k) {
    bool const alone = p.hides || p.lies; // no lanes nor derivatives: they see arguments that lie otherwise
    std::string const m = alone || k == 0 ? "" : k == 1 ? "G" : draw.of(meanings);
    for (int j = 0; j < 2; ++j) {
      stack const s = draw_stack(draw, p, m);
      if (s.empty()) continue;
      if (difference const d = check_stack(p, s, &t)) return d;
    }
  }
  if (p.smooth && !p.draws) {
    given const g = inputs_of(p);
    outcome const gradient = call(p, g, reference("G"), g.arguments);
    if (!gradient.results.empty() && !gradient.wrote && !is_coarse(p)) {
      ++t.comparisons;
      std::string const what = against_differences(p, g, gradient.results);
      if (!what.empty()) return {reference("G"), what};
    }
  }
  return {};
}
} // namespace random_programs
