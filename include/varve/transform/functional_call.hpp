// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/cat.hpp>
#include <varve/value/tensor.hpp>

#include <string>
#include <utility>
#include <vector>

namespace varve {

/// Tensors by name, in an order.
using parameter_dict = std::vector<std::pair<std::string, tensor>>;

/// Base of structures that have parameters and are called: `struct linear : module { tensor w; linear() {
/// register_parameter("w", w); } tensor operator()(tensor const& x); };` Parts of them are registered by name and found
/// as "part.w". One tensor registered under two names is tied: both follow a substitution.
class module {
public:
  module() = default;
  module(module const&) = delete; // registered members would be another's
  module& operator=(module const&) = delete;

  /// Every parameter with its full name, parts included, in the order of registration.
  template <class T = tensor>
  parameter_dict named_parameters() const {
    dependent<parameter_dict, T> r;
    for (auto const& s : named_slots<T>("")) r.push_back({s.first, *s.second});
    return r;
  }

protected:
  ~module() = default;
  template <std::derived_from<tensor> T>
  void register_parameter(std::string name, T& t) {
    own_.push_back({std::move(name), &t});
  }
  template <std::derived_from<module> M>
  void register_module(std::string name, M& m) {
    parts_.push_back({std::move(name), &m});
  }

private:
  template <class M, class... X>
  friend auto functional_call(M& m, std::vector<parameter_dict> const& dicts, bool strict, bool tie_weights,
                              X const&... x);
  template <class T>
  std::vector<std::pair<std::string, T*>> named_slots(std::string const& prefix) const {
    dependent<module, T> const& self = *this;
    std::vector<std::pair<std::string, T*>> r;
    for (auto const& p : self.own_) r.push_back({prefix + p.first, p.second});
    for (auto const& m : self.parts_)
      for (auto& s : m.second->template named_slots<T>(prefix + m.first + ".")) r.push_back(std::move(s));
    return r;
  }
  std::vector<std::pair<std::string, tensor*>> own_;
  std::vector<std::pair<std::string, module*>> parts_;
};

/// Calls `m(x...)` with other tensors in place of its parameters, which are back afterwards, exceptions included
/// (TR-21). Tied parameters follow one another unless `tie_weights` is off. A name in two dicts, one that there is none
/// of, or two values for what is tied is `value_error`; with `strict` so is a parameter that no dict names.
template <class M, class... X>
auto functional_call(M& m, std::vector<parameter_dict> const& dicts, bool strict, bool tie_weights, X const&... x) {
  static_assert(std::is_base_of_v<module, M>, "varve: functional_call: the structure must derive from module");
  auto const named_slots = static_cast<dependent<module, M> const&>(m).template named_slots<tensor>("");
  auto const refuse = [](std::string const& text) {
    refuse::with<value_error>(("varve: functional_call: " + text).c_str());
  };
  struct substitution {
    tensor* at;
    tensor value;
  };
  std::vector<substitution> wanted;
  std::vector<dependent<std::string, M>> seen;
  for (auto const& d : dicts)
    for (auto const& [name, value] : d) {
      for (auto const& s : seen)
        if (s == name) refuse(name + " appears in two dictionaries");
      seen.push_back(name);
      tensor* at = nullptr;
      for (auto const& s : named_slots)
        if (s.first == name) at = s.second;
      if (!at) refuse("there is no parameter " + name);
      tensor const original = *at;
      for (auto const& w : wanted)
        if (w.at == at && !w.value.is(value)) refuse(name + " is tied to a parameter that is given another value");
      for (auto const& s : named_slots)
        if (s.second == at || (tie_weights && s.second->is(original))) wanted.push_back({s.second, value});
    }
  if (strict)
    for (auto const& s : named_slots) {
      bool named = false;
      for (auto const& w : wanted) named = named || w.at == s.second;
      if (!named) refuse("no dictionary names the parameter " + s.first);
    }
  struct restore {
    std::vector<substitution> before;
    ~restore() {
      for (std::size_t k = before.size(); k-- > 0;) *before[k].at = before[k].value;
    }
  } back;
  for (auto const& w : wanted) {
    back.before.push_back({w.at, *w.at});
    *w.at = w.value;
  }
  return m(x...);
}
template <class M, class... X>
auto functional_call(M& m, parameter_dict const& parameters, X const&... x) {
  return functional_call(m, std::vector<dependent<parameter_dict, M>>{parameters}, false, true, x...);
}

/// Parameters of several modules of one structure, stacked along a new dimension in front: what `vmap` of
/// `functional_call` runs as an ensemble (TR-22). Leaves that require grad stay such.
template <class M, class T = tensor>
parameter_dict stack_module_state(std::vector<M*> const& models) {
  if (models.empty()) refuse::with<value_error>("varve: stack_module_state: at least one model is needed");
  std::vector<dependent<parameter_dict, M>> all;
  for (auto const* m : models) all.push_back(m->named_parameters());
  dependent<parameter_dict, M> r;
  for (std::size_t k = 0; k < all[0].size(); ++k) {
    std::vector<T> values;
    bool grad = true;
    for (auto const& d : all) {
      if (d.size() != all[0].size() || d[k].first != all[0][k].first)
        refuse::with<value_error>("varve: stack_module_state: the models differ in their parameters");
      values.push_back(static_cast<T const&>(d[k].second).detach());
      grad = grad && d[k].second.has_history() && d[k].second.is_leaf();
    }
    T const s = stack(values);
    if (grad) s.requires_grad_();
    r.push_back({all[0][k].first, s});
  }
  return r;
}

} // namespace varve
