// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/interpreter/latest_first.hpp>
#include <varve/interpreter/recorded_call.hpp>
#include <varve/interpreter/watched_backward.hpp>
#include <varve/op/add.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/slice.hpp>

/// @file
/// Reverse mode over the recorded graph. A run counts for each node the nodes that must run before it, and then runs
/// nodes whose count is zero. It runs and frees chains of a million nodes without recursion.
namespace varve {

namespace detail {
/// One run of reverse mode over a recorded graph, from given results to the values from which they were computed. A
/// node runs when all nodes that follow it have run, later ones first. Runs may nest, and threads may share nodes: the
/// data of a run about a node are its own. This class is a template so that including the header alone instantiates no
/// operator.
template <class T = tensor>
class backward_run {
public:
  /// Creates a run. With `keep`, saved values are kept for another run.
  explicit backward_run(bool keep);
  backward_run(backward_run const&) = delete;
  backward_run& operator=(backward_run const&) = delete;
  ~backward_run();

  /// Adds a cotangent of a result.
  void seed(edge const& e, T g);
  /// Requests the cotangent that arrives at an edge, and returns its number. Once there is a request, only nodes that
  /// lead to requested edges run.
  int capture(edge const& e) {
    captures_.push_back({e, {}, false});
    return static_cast<int>(captures_.size()) - 1;
  }
  /// Calls the hooks of nodes whose cotangent is requested, as if the nodes ran (`backward` with inputs).
  void call_hooks_of_captured() { hooks_of_captured_ = true; }
  T const& captured(int k) const { return captures_[k].value; }
  bool reached(int k) const { return captures_[k].reached; }

  void run();

  /// Returns the node that this thread is running, or null.
  static grad_node*& this_node() {
    static constinit thread_local grad_node* n = nullptr;
    return n;
  }
  /// True if the current run of this thread will execute a node. False outside of a run.
  static bool will_execute(grad_node* n) {
    backward_run* const r = current();
    if (!r) return false;
    std::uint32_t const k = r->find(n);
    return k != none && r->tasks_[k].needed;
  }
  bool keeps() const { return keep_; }
  /// True if a node takes part, that is, if gradients will arrive there.
  bool reaches(grad_node* n) const {
    std::uint32_t const k = find(n);
    return k != none && tasks_[k].wanted();
  }
  /// Returns a number that is unique to this run.
  std::uint64_t id() const { return id_; }
  static backward_run*& current() {
    static constinit thread_local backward_run* r = nullptr;
    return r;
  }

private:
  VARVE_INLINE boxed_args cotangents_of_operands(grad_node& n, boxed_args& g) const {
    constexpr int usual = 16;
    bool few[usual];
    list<dependent<bool, T>> many;
    if (n.count > usual) many.assign(static_cast<std::size_t>(n.count), false);
    bool* const wanted = n.count > usual ? many.data() : few;
    for (int i = 0; i < n.count; ++i) wanted[i] = static_cast<bool>(n.next[i]);
    if (!captures_.empty())
      for (int i = 0; i < n.count; ++i) wanted[i] = wanted[i] && tasks_[place(n.next[i].to())].wanted();
    if (n.extra) n.extra->before(n, g);
    grad_node* const above = this_node();
    this_node() = &n;
    struct restore {
      grad_node* n;
      ~restore() { this_node() = n; }
    } const leave{above};
    boxed_args out = this_thread_state.check_nan ? watched_backward<>(n, g, wanted) : n.type->backward(n, g, wanted);
    if (n.extra) n.extra->after(n, out, g);
    if (!keep_) n.type->release(n);
    return out;
  }
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct task {
    grad_node* at;
    T first;                    // the cotangent of result 0
    boxed_args* rest = nullptr; // those of the other results, from 1 on
    std::uint32_t waiting = 0;
    bool needed = true, is_captured = false;
    explicit task(grad_node* n) : at(n) {}
    bool wanted() const { return needed || is_captured; }
  };
  struct capture_t {
    edge at;
    T value;
    bool reached;
  };
  /// Set by the one run of the process that finds its tasks by marks in the nodes; other runs look them up in an index.
  static std::atomic<bool>& marks_taken() {
    static constinit std::atomic<bool> taken{false};
    return taken;
  }
  static bool takes_marks() {
    if (!single_threaded()) return !marks_taken().exchange(true, std::memory_order_acquire);
    bool const taken = marks_taken().load(std::memory_order_relaxed);
    marks_taken().store(true, std::memory_order_relaxed);
    return !taken;
  }
  std::uint32_t find(grad_node* n) const {
    if (owns_marks_) {
      std::uint32_t const k = n->mark.load(std::memory_order_relaxed);
      return k < tasks_.size() && tasks_[k].at == n ? k : none;
    }
    if (index_.empty()) return none;
    return index_[place_of(n)].task;
  }
  /// Returns the task of a node that is known to have one.
  std::uint32_t place(grad_node* n) const {
    return owns_marks_ ? n->mark.load(std::memory_order_relaxed) : index_[place_of(n)].task;
  }
  std::uint32_t add_task(grad_node* n) {
    auto const k = static_cast<std::uint32_t>(tasks_.size());
    tasks_.push_back(task(n));
    if (owns_marks_) n->mark.store(k, std::memory_order_relaxed);
    else insert(n, k);
    return k;
  }
  /// Returns the place of a node in the index, or the place where it would be inserted. Open addressing, at most half
  /// full.
  std::size_t place_of(grad_node* n) const {
    std::size_t at = (reinterpret_cast<std::uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15u & (index_.size() - 1);
    while (index_[at].at && index_[at].at != n) at = (at + 1) & (index_.size() - 1);
    return at;
  }
  void insert(grad_node* n, std::uint32_t k) {
    if (index_.size() < 2 * tasks_.size()) {
      index_.assign(index_.empty() ? 64 : 2 * index_.size(), {});
      for (std::uint32_t i = 0; i < k; ++i) index_[place_of(tasks_[i].at)] = {tasks_[i].at, i};
    }
    index_[place_of(n)] = {n, k};
  }
  void make_ready(std::uint32_t k) { ready_.push(tasks_[k].at->sequence, k); }
  /// Counts for every node what must run before it.
  std::uint32_t discover(grad_node* root);
  /// Finds the nodes that lead to a capture, starting from the leaves.
  void find_needed();
  void give(std::uint32_t k, std::uint32_t nr, T g) {
    T* sum = &tasks_[k].first;
    if (nr > 0) [[unlikely]] {
      if (!tasks_[k].rest) tasks_[k].rest = new boxed_args;
      while (tasks_[k].rest->size() < static_cast<int>(nr)) tasks_[k].rest->push_back(tensor());
      sum = &(*tasks_[k].rest)[static_cast<int>(nr) - 1];
    }
    if (!sum->defined()) [[likely]]
      *sum = static_cast<T&&>(g);
    else join(*sum, g);
  }
  VARVE_NOINLINE static void join(T& sum, T const& g) {
    if (sum.is_unique() && is_plain(sum) && is_plain(g) && sum.is_contiguous() && sum.dtype() == g.dtype() &&
        sum.sizes() == g.sizes())
      add_(sum, g); // no other handle sees it
    else sum = T(add(static_cast<T const&>(sum), g));
  }
  static bool is_plain(T const& t) { return !t.is_wrapped() && t.has_data() && !t.has_history(); }
  /// Adds the cotangent of a slice, which is zero elsewhere, to the sum of its operand, so that differentiating n
  /// slices costs time proportional to their total size. Returns false if the difference could be observed.
  VARVE_NOINLINE bool adds_part(grad_node& n, boxed_args const& g) {
    if (n.type != &operator_node::type_ || n.extra || n.next[0].nr() != 0 || !g[0].defined()) return false;
    op_table const& t = *static_cast<operator_node&>(n).table;
    T const &sum = tasks_[place(n.next[0].to())].first, &part = g[0];
    if (!sum.defined() || !t.handle || t.handle() != &handle<dependent<slice_t, T>> ||
        t.registered->load(std::memory_order_relaxed) ||
        !are_built_in<dependent<slice_backward_t, T>, dependent<add_t, T>, dependent<add__t, T>>())
      return false;
    if (!this_thread_state.quiet() || this_thread_state.check_nan || !sum.is_unique() || !is_plain(sum) ||
        !is_plain(part) || !sum.is_contiguous() || sum.dtype() != part.dtype() || is_compact(sum.dtype()) ||
        is_complex(sum.dtype()))
      return false;
    T const here = sum.with_layout(
        rules<dependent<slice_t, T>>::layout_of(static_cast<operator_node&>(n).attributes_of(), sum.where()), false);
    if (!(here.sizes() == part.sizes())) return false;
    kernel::operand const in[] = {operand_of(here, here.strides().numbers()),
                                  operand_of(part, part.strides().numbers())};
    kernel::pointwise(here.sizes(), in[0], in, 2, info_of<dependent<add_t, T>>.loops[static_cast<int>(sum.dtype())]);
    if (!keep_) n.type->release(n);
    return true;
  }
  static void take_rest(task& t, boxed_args& g) {
    int const n = t.at->results - 1;
    for (int i = 0; i < n; ++i)
      g.push_back(t.rest && i < t.rest->size() ? static_cast<tensor&&>((*t.rest)[i]) : tensor());
    delete t.rest;
    t.rest = nullptr;
  }
  VARVE_COLD static void call_hooks(grad_node& n, boxed_args g) {
    n.extra->before(n, g);
    boxed_args nothing;
    for (int k = 0; k < n.count; ++k) nothing.push_back(T());
    n.extra->after(n, nothing, g);
  }
  void hand_out(grad_node& n, boxed_args& g) {
    for (auto& c : captures_)
      if (c.at.to() == &n) c.value = g[static_cast<int>(c.at.nr())];
  }

  bool keep_, owns_marks_, hooks_of_captured_ = false;
  std::uint64_t id_ = next_layer_id();
  backward_run* outer_;
  level_seen_again outer_level_ = this_thread_sees_again;
  /// Memory that the runs of a thread reuse one after the other.
  struct lists {
    list<task> tasks;
    latest_first<dependent<std::uint32_t, T>> ready;
    list<dependent<grad_node*, T>> open;
    list<dependent<edge, T>> roots;
    void swap(lists& o) {
      tasks.swap(o.tasks);
      ready.swap(o.ready);
      open.swap(o.open);
      roots.swap(o.roots);
    }
  };
  static lists& spare() {
    thread_local lists l;
    return l;
  }
  lists mine_;
  list<task>& tasks_ = mine_.tasks;
  latest_first<dependent<std::uint32_t, T>>& ready_ = mine_.ready;
  list<dependent<grad_node*, T>>& open_ = mine_.open;
  list<dependent<edge, T>>& roots_ = mine_.roots;
  struct indexed {
    grad_node* at = nullptr;
    std::uint32_t task = none;
  };
  list<indexed> index_;
  list<capture_t> captures_;
};

#if VARVE_DEFINES
template <class T>
backward_run<T>::backward_run(bool keep) : keep_(keep), owns_marks_(takes_marks()), outer_(current()) {
  current() = this;
  mine_.swap(spare()); // the lists of the thread's last run; empty for a nested run
  tasks_.clear();
  ready_.clear();
  open_.clear();
  this_thread_sees_again = {};
}
template <class T>
backward_run<T>::~backward_run() {
  current() = outer_;
  this_thread_sees_again = outer_level_;
  if (owns_marks_) marks_taken().store(false, std::memory_order_release);
  for (auto& t : tasks_) delete t.rest;
  tasks_.clear();
  roots_.clear();
  if (tasks_.capacity() <= 4096) mine_.swap(spare());
}
template <class T>
void backward_run<T>::seed(edge const& e, T g) {
  roots_.push_back(e);
  std::uint32_t const k = discover(e.to());
  give(k, e.nr(), static_cast<T&&>(g));
}
template <class T>
void backward_run<T>::run() {
  if (!captures_.empty()) find_needed();
  task* const tasks = tasks_.data(); // no task is added any more
  std::uint32_t only = none;         // a task that may run while no other may
  if (roots_.size() == 1) only = place(roots_[0].to());
  else
    for (std::uint32_t k = 0; k < tasks_.size(); ++k)
      if (tasks[k].waiting == 0) make_ready(k);
  while (only != none || !ready_.empty()) {
    std::uint32_t const k = only != none ? only : ready_.take();
    only = none;
    grad_node& n = *tasks[k].at;
    boxed_args g(static_cast<T&&>(tasks[k].first));
    if (n.results > 1) take_rest(tasks[k], g);
    if (n.extra) n.extra->arrived(n, g);
    if (tasks[k].is_captured) {
      hand_out(n, g);
      if (hooks_of_captured_ && n.extra && !tasks[k].needed && !n.type->is_leaf) [[unlikely]]
        call_hooks(n, g);
    }
    bool const added = n.count == 1 && tasks[k].needed && n.next[0] && adds_part(n, g);
    boxed_args out = tasks[k].needed && !added ? cotangents_of_operands(n, g) : boxed_args();
    for (int i = 0; i < n.count; ++i) {
      if (!n.next[i]) continue;
      std::uint32_t const to = place(n.next[i].to());
      if (i < out.size() && out[i].defined()) give(to, n.next[i].nr(), static_cast<T&&>(out[i]));
      if (--tasks[to].waiting != 0) continue;
      if (only == none && ready_.empty()) {
        only = to;
        continue;
      }
      if (only != none) make_ready(only);
      only = none;
      make_ready(to);
    }
  }
}
template <class T>
std::uint32_t backward_run<T>::discover(grad_node* root) {
  if (std::uint32_t const k = find(root); k != none) return k;
  std::uint32_t const first = add_task(root);
  open_.push_back(root);
  while (!open_.empty()) {
    grad_node* const n = open_.back();
    open_.pop_back();
    edge const* const end = n->next + n->count;
    for (edge const* e = n->next; e != end; ++e) {
      grad_node* const to = e->to();
      if (!to) continue;
      std::uint32_t k = find(to);
      if (k == none) {
        k = add_task(to);
        open_.push_back(to);
      }
      ++tasks_[k].waiting;
    }
  }
  return first;
}
template <class T>
void backward_run<T>::find_needed() {
  for (auto& t : tasks_) t.needed = false;
  for (auto& c : captures_)
    if (std::uint32_t const k = find(c.at.to()); k != none) tasks_[k].is_captured = c.reached = true;
  struct visited {
    std::uint32_t task;
    int next;
  };
  list<visited> path;
  list<dependent<char, T>> seen(tasks_.size(), 0);
  for (auto const& r : roots_) path.push_back({find(r.to()), 0});
  while (!path.empty()) {
    auto& [k, i] = path.back();
    grad_node* const n = tasks_[k].at;
    seen[k] = 1;
    if (i == n->count) {
      std::uint32_t const done = k;
      for (int j = 0; j < n->count; ++j)
        if (n->next[j]) tasks_[done].needed = tasks_[done].needed || tasks_[find(n->next[j].to())].wanted();
      path.pop_back();
      continue;
    }
    grad_node* const to = n->next[i++].to();
    if (!to) continue;
    std::uint32_t const child = find(to);
    if (!seen[child]) path.push_back({child, 0});
  }
}
#endif
} // namespace detail

} // namespace varve
