// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <varve/graph/as_traced.hpp>
#include <varve/graph/block_plan.hpp>
#include <varve/graph/block_run.hpp>
#include <varve/graph/functionalize.hpp>
#include <varve/graph/fuse_tensors.hpp>
#include <varve/kernel/matmul.hpp>

/// @file
/// Fused execution of graphs made at run time: the planner of `fuse` runs now, and its loops are run block by block by kernels that exist.
namespace varve {
namespace loop {

/// A planned graph ready to run. Immutable, so that threads may share it.
struct prepared {
  program p;
  list<meta> arguments;
  std::vector<block_body> bodies;
  std::vector<tensor> tables;                       // of array constants, by buffer
  std::vector<op_table const*> operators;           // of calls
  std::vector<std::unique_ptr<prepared>> functions; // by region
  index_t scratch = 0;                              // bytes: the workspace first, then what the hungriest loop needs
};

/// Plans a graph and makes it ready. Errors: `missing_rule` for operators that tensors do not know, `value_error` for what writes into arguments.
template <class = void>
VARVE_COLD std::unique_ptr<prepared> prepare(graph const& g) {
  auto r = std::make_unique<prepared>();
  r->p = plan(g);
  program const& p = r->p;
  for (int k = 0; k < g.regions[0].inputs; ++k) r->arguments.push_back(g.nodes[k].out);
  index_t hungriest = 0;
  for (body const& b : p.bodies) {
    r->bodies.push_back(block_planner<>::plan(p, b));
    if (r->bodies.back().scratch > hungriest) hungriest = r->bodies.back().scratch;
  }
  r->scratch = (p.workspace + 63) / 64 * 64 + hungriest;
  r->tables.resize(p.buffers.size());
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    buffer const& b = p.buffers[k];
    if (b.where != place::constant) continue;
    tensor const t = r->tables[k] = tensor::empty({b.elements}, b.type);
    on_dtype(b.type, "fuse", [&]<class T>() {
      for (index_t e = 0; e < b.elements; ++e) static_cast<T*>(t.raw())[e] = kernel::cast<T>(p.constants[b.number + e]);
    });
  }
  r->operators.resize(p.calls.size());
  r->functions.resize(g.regions.size());
  for (stage const& s : p.stages) {
    if (s.kind == stage_kind::loops || s.kind == stage_kind::fill || s.kind == stage_kind::matmul) continue;
    call_info const& c = p.calls[s.number];
    if (s.kind == stage_kind::call) {
      if (c.operands > 3) refuse::argument_is_invalid("fuse", (std::string("operator ") + c.op->name + " has more than three operands; call it outside of the fused function").c_str());
      op_table const* const table = ops::find(c.op->name);
      if (!table || !table->eval)
        throw missing_rule((std::string("varve: fuse: operator ") + c.op->name + " is not known for tensors; call it on a tensor anywhere in the program").c_str());
      r->operators[static_cast<std::size_t>(s.number)] = table;
    } else {
      auto const add = [&](int region) { r->functions[static_cast<std::size_t>(region)] = prepare(function_of(g, region)); };
      add(c.region);
      if (s.kind == stage_kind::branch) add(c.region + 1);
      if (c.condition >= 0) add(c.condition);
    }
  }
  return r;
}

/// Runs a prepared program on the addresses of its arguments and results.
template <class = void>
class program_runner {
public:
  static void run(prepared const& r, std::byte* const* arguments, std::byte* const* results) {
    constexpr index_t usual = 1 << 15;
    if (r.scratch <= usual) {
      alignas(64) std::byte memory[usual];
      program_runner{r, arguments, results, memory}.stages();
    } else {
      tensor const memory = tensor::empty({r.scratch}, dtype::uint8);
      program_runner{r, arguments, results, static_cast<std::byte*>(memory.raw())}.stages();
    }
  }

private:
  prepared const& r;
  program const& p;
  std::byte* const* arguments;
  std::byte* const* results;
  std::byte *arena, *scratch;
  static constexpr std::size_t usual_buffers = 32;
  std::byte* few[usual_buffers];
  std::unique_ptr<std::byte*[]> many;
  std::byte** at = few;

  program_runner(prepared const& r_, std::byte* const* arguments_, std::byte* const* results_, std::byte* memory)
      : r(r_), p(r_.p), arguments(arguments_), results(results_), arena(memory), scratch(memory + (p.workspace + 63) / 64 * 64) {
    if (p.buffers.size() > usual_buffers) many = std::make_unique<std::byte*[]>(p.buffers.size()), at = many.get();
    for (std::size_t k = 0; k < p.buffers.size(); ++k) {
      buffer const& b = p.buffers[k];
      at[k] = b.where == place::argument ? arguments[b.number] : b.where == place::result ? results[b.number] : b.where == place::constant ? static_cast<std::byte*>(r.tables[k].raw()) : arena + b.number;
    }
  }
  void stages() {
    for (stage const& s : p.stages) {
      if (s.kind == stage_kind::loops) block_runner<>::run(r.bodies[static_cast<std::size_t>(s.number)], at, scratch);
      else if (s.kind == stage_kind::fill) fill(s);
      else if (s.kind == stage_kind::matmul) multiply(s, p.calls[s.number]);
      else if (s.kind == stage_kind::call) call(s, p.calls[s.number]);
      else if (s.kind == stage_kind::branch) branch(s, p.calls[s.number]);
      else scan(s, p.calls[s.number]);
    }
  }
  void fill(stage const& s) {
    buffer const& b = p.buffers[s.out];
    block_reducer<>(s.value == 0 ? sink_kind::sum : s.value < 0 ? sink_kind::greatest : sink_kind::least, b.type).clear(b.elements, at[s.out]);
  }
  void multiply(stage const& s, call_info const& c) {
    int const rank = c.out.sizes.n;
    bool const ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
    index_t const m = c.out.sizes[rank - 2], n = c.out.sizes[rank - 1], k = c.in[0].sizes[rank - (ta ? 2 : 1)], size = itemsize(c.out.type);
    index_t const count = m * n > 0 ? numel(c.out.sizes) / (m * n) : 0;
    for (index_t e = 0; e < count; ++e)
      kernel::matmul<>(c.out.type, m, n, k, {at[s.in[0]] + e * m * k * size, ta ? 1 : k, ta ? m : 1}, {at[s.in[1]] + e * k * n * size, tb ? 1 : n, tb ? k : 1}, {at[s.out] + e * m * n * size, n, 1});
  }
  void call(stage const& s, call_info const& c) {
    boxed_args in;
    for (int k = 0; k < c.operands; ++k) in.push_back(tensor::from_blob(at[s.in[k]], c.in[k].sizes, contiguous_strides(c.in[k].sizes), c.in[k].type));
    tensor const y = r.operators[static_cast<std::size_t>(s.number)]->eval(c.at, in);
    dims const strides = contiguous_strides(c.out.sizes);
    kernel::copy_strided(c.out.sizes, {static_cast<void*>(at[s.out]), strides.v, itemsize(c.out.type)}, varve::detail::operand_of(y, y.strides().v));
  }
  std::vector<std::byte*> addresses(int first, int count) const {
    std::vector<std::byte*> v;
    for (int k = 0; k < count; ++k) v.push_back(at[p.slots[first + k]]);
    return v;
  }
  void branch(stage const& s, call_info const& c) {
    bool const chosen = *reinterpret_cast<bool const*>(at[s.in[0]]);
    run(*r.functions[static_cast<std::size_t>(c.region + (chosen ? 0 : 1))], addresses(s.in[1], c.operands).data(), addresses(s.in[2], c.results).data());
  }
  /// A loop: what is walked through and put out moves on by one row from step to step; what is carried lies in two places in turn. Outputs of steps that were not made are 0.
  void scan(stage const& s, call_info const& c) {
    int const carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]);
    bool const open = c.condition >= 0, counted = c.at[0][3] != 0;
    index_t const n = c.at[1][0];
    auto bytes = [&](int slot) { return static_cast<std::size_t>(p.buffers[p.slots[slot]].elements * itemsize(p.buffers[p.slots[slot]].type)); };
    auto row_bytes = [&](int slot) { return static_cast<index_t>(bytes(slot)) / (n ? n : 1); };
    std::vector<std::byte*> in = addresses(s.in[1], c.operands), out = addresses(s.in[2], c.results), here(out.begin(), out.begin() + carried), there = addresses(s.in[2] + c.results, carried);
    std::vector<std::byte*> const from = in, to = out;
    if (n % 2 && !open && !counted) std::swap(here, there); // the last step leaves it where it is wanted
    for (int k = 0; k < carried; ++k) std::memcpy(here[static_cast<std::size_t>(k)], from[static_cast<std::size_t>(k)], bytes(s.in[1] + k));
    index_t steps = n;
    if (counted) on_dtype(p.buffers[p.slots[s.in[1] + walked]].type, "scan", [&]<class T>() { steps = static_cast<index_t>(*reinterpret_cast<T const*>(from[static_cast<std::size_t>(walked)])); });
    auto goes_on = [&](index_t step) {
      if (!open) return step < steps;
      in = from;
      for (std::size_t k = 0; k < here.size(); ++k) in[k] = here[k];
      run(*r.functions[static_cast<std::size_t>(c.condition)], in.data(), &at[s.in[0]]);
      bool const go = *reinterpret_cast<bool const*>(at[s.in[0]]);
      if (go && n > 0 && step == n) refuse::loop_takes_more_steps_than_its_bound("while_loop", n);
      return go;
    };
    index_t step = 0;
    for (; goes_on(step); ++step) {
      index_t const row = c.at[0][2] ? steps - 1 - step : step;
      for (int k = 0; k < walked; ++k) in[static_cast<std::size_t>(k)] = k < carried ? here[static_cast<std::size_t>(k)] : from[static_cast<std::size_t>(k)] + row * row_bytes(s.in[1] + k);
      for (int k = 0; k < c.results; ++k) out[static_cast<std::size_t>(k)] = k < carried ? there[static_cast<std::size_t>(k)] : to[static_cast<std::size_t>(k)] + row * row_bytes(s.in[2] + k);
      run(*r.functions[static_cast<std::size_t>(c.region)], in.data(), out.data());
      std::swap(here, there);
    }
    if (!open && !counted) return;
    for (int k = 0; k < carried; ++k)
      if (here[static_cast<std::size_t>(k)] != to[static_cast<std::size_t>(k)]) std::memcpy(to[static_cast<std::size_t>(k)], here[static_cast<std::size_t>(k)], bytes(s.in[2] + k));
    for (int k = carried; k < c.results; ++k) std::memset(to[static_cast<std::size_t>(k)] + step * row_bytes(s.in[2] + k), 0, static_cast<std::size_t>((n - step) * row_bytes(s.in[2] + k)));
  }
};

} // namespace loop

/// A graph planned for running as a whole: see `fuse(graph)`. Copies share the plan.
class fused_graph {
public:
  explicit fused_graph(std::shared_ptr<loop::prepared const> plan) : plan_(std::move(plan)) {}
  /// dtypes and sizes of the arguments and of the results.
  list<meta> const& arguments() const { return plan_->arguments; }
  list<meta> const& results() const { return plan_->p.results; }
  /// What the planner made of the graph.
  loop::program const& program() const { return plan_->p; }
  /// Runs on tensors; the results are fresh. dtype and sizes of each argument are checked first (`dtype_error`, `shape_error`: its number, expected and found), and that no
  /// transform or autograd would miss the call (`transform_error`, `autograd_error`). Tensors whose elements are not in row-major order are copied.
  template <class T = tensor>
  boxed_args operator()(boxed_args const& x) const {
    if (x.size() != static_cast<int>(arguments().size())) refuse::shapes_do_not_match("fuse (number of arguments)", dims{x.size()}, dims{static_cast<index_t>(arguments().size())});
    std::vector<std::byte*> in, out;
    boxed_args kept, y;
    for (int k = 0; k < x.size(); ++k) {
      loop::check_tensor({"argument", k, arguments()[k]}, x[k]);
      if (!x[k].is_contiguous()) kept.push_back(detail::contiguous_copy(x[k]));
      in.push_back(static_cast<std::byte*>((x[k].is_contiguous() ? x[k] : kept[kept.size() - 1]).raw()));
    }
    for (meta const& m : results()) {
      y.push_back(T::empty(m.sizes, m.type));
      out.push_back(static_cast<std::byte*>(y[y.size() - 1].raw()));
    }
    loop::program_runner<>::run(*plan_, in.data(), out.data());
    return y;
  }

private:
  std::shared_ptr<loop::prepared const> plan_;
};

/// Plans a graph, made by `make_fx` or `trace`, for running as a whole: `auto run = fuse(make_fx(f)(x)); tensor y = run(boxed_args(x))[0];`. The same optimization and plan as of
/// functions that the compiler fuses; its loops run in blocks that stay in the first cache, elementwise operators by the kernels of tensors. Products of sums may be rounded once
/// where operator by operator they are rounded twice, and sums have another order; all else is equal to the bit. Kernels registered at run time are not asked.
/// Errors: `value_error` for symbolic sizes, and for graphs that write into their arguments, `missing_rule` for operators that tensors do not know.
template <class G>
  requires std::is_same_v<G, graph>
fused_graph fuse(G const& g) {
  for (node const& n : g)
    for (index_t d : n.out.sizes)
      if (is_symbol(d)) refuse::argument_is_invalid("fuse", "the graph has symbolic sizes; trace it with the sizes of the arguments");
  G const pure = functionalize(g);
  G const typed = as_traced<>(pure);
  G const better = optimize(typed);
  return fused_graph(loop::prepare<>(better));
}

} // namespace varve
