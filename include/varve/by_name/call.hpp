// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/leaf.hpp>
#include <varve/by_name/row.hpp>
#include <varve/core/message.hpp>
#include <varve/core/number_text.hpp>
#include <varve/dispatch/library.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/out.hpp>

#include <deque>
#include <map>
#include <mutex>
#include <string_view>

/// @file
/// Calls by name, with arguments known at run time: `ops::call("sum", {x}, {{"dim", 1}})`. Available are the names of
/// the families whose headers the program includes (`by_name/all.hpp` includes all). A program that links the compiled
/// library has all names.
namespace varve {

namespace detail {
/// One schema of a name, and the function to call for it.
struct call_overload {
  enum class form : unsigned char { row, in_place, out };
  call_row const* row = nullptr;
  op_table const* table = nullptr; // an operator defined by a `library`, which has no row
  form as = form::row;
  operator_schema schema;

  bool mutates_first() const { return as == form::in_place; }
};
using call_overloads = std::vector<call_overload const*>;

/// Returns the overloads of a name; empty if the name is unknown.
template <class T = argument>
call_overloads overloads_of_name(std::string_view name);
template <class T>
std::vector<T> call_by_name(std::string_view name, std::span<T const> x, std::span<named_argument const> named);
template <class T>
std::vector<std::string> names_of_calls();
} // namespace detail

inline std::vector<argument> ops::call(std::string_view name, std::span<argument const> x,
                                       std::span<named_argument const> named) {
  return detail::call_by_name<argument>(name, x, named);
}
inline std::vector<argument> ops::call(std::string_view name, std::initializer_list<argument> x,
                                       std::initializer_list<named_argument> named) {
  return detail::call_by_name<argument>(name, {x.begin(), x.size()}, {named.begin(), named.size()});
}
inline std::vector<std::string> ops::schemas(std::string_view name) {
  std::vector<std::string> r;
  for (detail::call_overload const* o : detail::overloads_of_name<>(name)) r.push_back(to_string(o->schema));
  return r;
}
inline std::vector<std::string> ops::names() { return detail::names_of_calls<argument>(); }

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
/// Returns where the overload part of a schema's name begins. Names in a Python namespace have no overload part.
inline std::size_t end_of_base(std::string_view name) {
  for (std::string_view space : {"nn.", "special.", "linalg.", "fft.", "masked.", "signal."})
    if (name.substr(0, space.size()) == space) return name.size();
  return (std::min)(name.find('.'), name.size());
}

/// True for schema arguments that are not passed to functions of rows: varve has one device and one layout.
inline bool is_about_memory(schema_argument const& a) {
  for (std::string_view t : {"Layout", "Device", "MemoryFormat", "Generator"})
    if (a.type.substr(0, t.size()) == t) return true;
  return a.name == "pin_memory";
}
inline bool is_list_type(std::string_view t) { return t.find('[') != t.npos; }
/// Returns the type without list and optional marks: `Tensor` of `Tensor[]?`, and `int` for all integers.
inline std::string_view base_type(std::string_view t) {
  std::string_view const b = t.substr(0, t.find_first_of("[?"));
  return b == "SymInt" ? "int" : b;
}
/// True if arguments of a schema's type can be passed to a parameter with this code.
inline bool fits_parameter(std::string_view type, char code) {
  std::string_view const b = base_type(type);
  if (code == 'a') return true;
  if (is_list_type(type)) return (code == 'T' && b == "Tensor") || (code == 'I' && b == "int");
  switch (code) {
  case 't':
    return b == "Tensor" || b == "Scalar";
  case 'i':
    return b == "int";
  case 'f':
    return b == "float" || b == "Scalar";
  case 'b':
    return b == "bool";
  case 's':
    return b == "str";
  case 'y':
    return b == "ScalarType";
  default:
    return false;
  }
}

/// All rows by name. A schema is parsed when its name is first called.
class call_table {
public:
  static call_table& instance() {
    static call_table all;
    return all;
  }
  call_overloads find(std::string_view name) {
    std::lock_guard const on(lock_);
    take_new_families();
    if (name.substr(0, 6) == "aten::") name.remove_prefix(6);
    call_overloads found = read(std::string(name));
    if (!found.empty()) return found;
    std::size_t const dot = end_of_base(name); // an overload: add.Tensor
    for (call_overload const* o : read(std::string(name.substr(0, dot))))
      if (o->schema.name == name) found.push_back(o);
    if (found.empty()) of_library(std::string(name), found);
    return found;
  }
  std::vector<std::string> names() {
    std::lock_guard const on(lock_);
    take_new_families();
    std::vector<std::string> r;
    for (auto const& e : entries_) r.push_back(e.first);
    return r;
  }

private:
  struct entry {
    std::vector<std::pair<call_row const*, call_overload::form>> rows;
    call_overloads known;
  };
  std::mutex lock_;
  call_family const* newest_ = nullptr;
  std::map<std::string, entry, std::less<>> entries_;
  std::deque<call_overload> made_;

  void take_new_families() {
    for (call_family const* f = call_family::first(); f != newest_; f = f->next)
      for (call_row const& r : f->rows()) take(r);
    newest_ = call_family::first();
  }
  void take(call_row const& r) {
    std::string_view const text = r.schema;
    std::string_view const full = text.substr(0, text.find('('));
    take(std::string(full.substr(0, end_of_base(full))), r);
    std::string_view more = r.also;
    while (!more.empty()) {
      std::size_t const n = (std::min)(more.find(' '), more.size());
      take(std::string(more.substr(0, n)), r);
      more.remove_prefix((std::min)(n + 1, more.size()));
    }
  }
  void take(std::string const& name, call_row const& r) {
    auto const forms = static_cast<unsigned>(r.forms);
    entries_[name].rows.emplace_back(&r, call_overload::form::row);
    if ((forms & static_cast<unsigned>(call_forms::in_place)) && name.substr(0, 2) != "__")
      entries_[name + "_"].rows.emplace_back(&r, call_overload::form::in_place);
    if (forms & (static_cast<unsigned>(call_forms::out) | static_cast<unsigned>(call_forms::out_of_its_dtype)))
      entries_[name].rows.emplace_back(&r, call_overload::form::out);
  }
  call_overloads const& read(std::string const& name) {
    static call_overloads const nothing;
    auto const at = entries_.find(name);
    if (at == entries_.end()) return nothing;
    entry& e = at->second;
    while (e.known.size() < e.rows.size()) {
      auto const& [row, form] = e.rows[e.known.size()];
      made_.push_back(made(*row, form));
      e.known.push_back(&made_.back());
    }
    return e.known;
  }
  static call_overload made(call_row const& r, call_overload::form form) {
    call_overload o{&r, nullptr, form, operator_schema::parse(r.schema)};
    check(o);
    std::size_t const dot = end_of_base(o.schema.name);
    if (form == call_overload::form::in_place) {
      o.schema.name.insert(dot, "_");
      o.schema.arguments[0].alias = "a", o.schema.arguments[0].mutated = true;
      o.schema.results.resize(1);
      o.schema.results[0].alias = "a", o.schema.results[0].mutated = true;
    } else if (form == call_overload::form::out) {
      o.schema.name += dot == o.schema.name.size() ? ".out" : "_out";
      schema_argument out;
      out.type = "Tensor", out.name = "out", out.alias = "a", out.mutated = out.keyword_only = true;
      o.schema.arguments.push_back(out);
      o.schema.results[0].alias = "a", o.schema.results[0].mutated = true;
    }
    return o;
  }
  /// Throws if the parameters of a row's function do not match its schema, which is a mistake in the table.
  static void check(call_overload const& o) {
    char const* code = o.row->parameters;
    bool fits = true;
    for (schema_argument const& a : o.schema.arguments) {
      if (is_about_memory(a)) continue;
      fits = fits && *code && fits_parameter(a.type, *code);
      code += *code != 0;
    }
    if (!fits || *code)
      refuse::with<dispatch_error>(("varve: the function of the row \"" + std::string(o.row->schema) +
                                    "\" does not take what the schema says; its parameters have the codes \"" +
                                    o.row->parameters + "\"")
                                       .c_str());
  }
  void of_library(std::string const& name, call_overloads& found) {
    op_table const* const t = ops::find(name.c_str());
    if (!t || !*t->schema) return;
    for (call_overload const& o : made_)
      if (o.table == t) return found.push_back(&o);
    made_.push_back({nullptr, t, call_overload::form::row, operator_schema::parse(name + t->schema)});
    found.push_back(&made_.back());
  }
};

/// The arguments of one call bound to the arguments of one schema. `why` is the reason if they do not match.
class call_binding {
public:
  std::string why;
  std::vector<argument> values;
  bool requires_grad = false;

  /// Binds the arguments. `lenient`: a tensor of rank 0 may be passed as a number.
  call_binding(call_overload const& o, std::span<argument const> x, std::span<named_argument const> named, bool lenient)
      : values(o.schema.arguments.size()), schema_(o.schema), given_(values.size()), lenient_(lenient) {
    if (o.row && o.row->forms == call_forms::variadic && !x.empty() && x[0].is<tensor>())
      set(0, argument(argument::list(x.begin(), x.end())));
    else place(x);
    for (named_argument const& n : named)
      if (why.empty()) place(n);
    for (std::size_t k = 0; k < values.size() && why.empty(); ++k)
      if (!given_[k]) leave_out(k);
  }

private:
  operator_schema const& schema_;
  std::vector<bool> given_;
  bool lenient_;

  std::size_t positional() const {
    std::size_t n = 0;
    while (n < values.size() && !schema_.arguments[n].keyword_only) ++n;
    return n;
  }
  void place(std::span<argument const> x) {
    std::size_t const most = positional();
    // Accept the elements of the only list as separate arguments: `x.view(2, 3)`.
    bool const only_list = most == 2 && base_type(schema_.arguments[1].type) == "int" &&
                           is_list_type(schema_.arguments[1].type) && x.size() > 1 && x[1].is<extent>();
    if (only_list && (x.size() > most || schema_.arguments[1].type.find("[]") != std::string::npos)) {
      argument::list all(x.begin() + 1, x.end());
      set(0, x[0]);
      if (why.empty()) set(1, all);
      return;
    }
    if (x.size() > most) {
      why = "takes " + std::to_string(most) + " arguments by place, but " + std::to_string(x.size()) + " were given";
      return;
    }
    for (std::size_t k = 0; k < x.size() && why.empty(); ++k) set(k, x[k]);
  }
  void place(named_argument const& n) {
    std::size_t k = 0;
    while (k < values.size() && schema_.arguments[k].name != n.name) ++k;
    if (k == values.size() && n.name == "input" && !values.empty() && schema_.arguments[0].name == "self") k = 0;
    if (k == values.size() && n.name == "requires_grad" && n.value.is<bool>() && makes_tensors()) {
      requires_grad = n.value.as<bool>();
      return;
    }
    if (k == values.size()) why = "has no argument '" + n.name + "'";
    else if (given_[k]) why = "was given the argument '" + n.name + "' twice";
    else set(k, n.value);
  }
  bool makes_tensors() const {
    for (schema_argument const& a : schema_.arguments)
      if (a.type == "Device?") return true;
    return false;
  }
  void set(std::size_t k, argument const& a) {
    schema_argument const& to = schema_.arguments[k];
    given_[k] = true;
    if (!take(to.type, a, values[k])) why = "wants " + to.type + " for the argument '" + to.name + "', not " + a.kind();
    else if (is_about_memory(to) && !is_usual(values[k])) why = "has only the usual value of '" + to.name + "' here";
  }
  static bool is_usual(argument const& a) {
    if (a.is_none() || (a.is<bool>() && !a.as<bool>())) return true;
    if (!a.is<std::string>()) return false;
    for (char const* s : {"cpu", "strided", "preserve_format", "contiguous_format"})
      if (a.as<std::string>() == s) return true;
    return false;
  }
  void leave_out(std::size_t k) {
    schema_argument const& a = schema_.arguments[k];
    if (a.default_value.empty()) why = "lacks the argument '" + a.name + "' (" + a.type + ")";
    else if (!take(a.type, read_default(a), values[k])) why = "has a default of '" + a.name + "' that is not read";
  }
  static argument read_default(schema_argument const& a) {
    std::string_view s = a.default_value;
    if (s == "None") return none;
    if (s == "True" || s == "False") return s == "True";
    if (s[0] == '[') {
      argument::list all;
      s = s.substr(1, s.size() - 2);
      while (!s.empty()) {
        std::size_t const n = (std::min)(s.find(','), s.size());
        all.emplace_back(std::strtoll(std::string(s.substr(0, n)).c_str(), nullptr, 10));
        s.remove_prefix((std::min)(n + 1, s.size()));
      }
      return all;
    }
    if (s[0] == '\'' || s[0] == '"') return std::string(s.substr(1, s.size() - 2));
    if (base_type(a.type) == "str" || base_type(a.type) == "MemoryFormat") return std::string(s);
    if (double v = 0; s.find_first_of(".e") != s.npos && detail::read_number(s, v)) return v;
    return std::strtoll(a.default_value.c_str(), nullptr, 10);
  }
  /// Converts an argument to a schema's type. Returns false if that is not possible.
  bool take(std::string_view type, argument const& a, argument& to) const {
    if (!type.empty() && type.back() == '?') {
      if (a.is_none()) return true;
      type.remove_suffix(1);
    }
    std::size_t const open = type.find('[');
    if (open == type.npos) return take_one(type, a, to);
    std::string_view const one = type.substr(0, open);
    bool const counted = type[open + 1] != ']';
    argument::list all;
    if (a.is<argument::list>()) {
      for (argument const& e : a.as<argument::list>()) {
        all.emplace_back();
        if (!take(one, e, all.back())) return false;
      }
    } else if (counted) { // one number for `int[2]`
      std::size_t const n =
          static_cast<std::size_t>(std::strtoul(std::string(type.substr(open + 1)).c_str(), nullptr, 10));
      argument e;
      if (!take_one(one, a, e)) return false;
      all.assign(std::max<std::size_t>(n, 1), e);
    } else return false;
    to = std::move(all);
    return true;
  }
  bool take_one(std::string_view type, argument const& a, argument& to) const {
    std::string_view const b = base_type(type);
    bool const scalar = b == "Scalar", whole = b == "int", real = b == "float";
    if (a.is<tensor>() && (scalar || whole || real)) { // a tensor of rank 0 as a number
      tensor const& t = a.as<tensor>();
      if (!lenient_ || !t.defined() || t.dim() != 0 || t.has_history() || t.is_wrapped()) return false;
      if (whole && is_floating(t.dtype())) return false;
      if (t.dtype() == dtype::bool_) return scalar ? (to = t.item<bool>(), true) : false;
      if (is_floating(t.dtype())) to = t.item<double>();
      else to = t.item<index_t>();
      return true;
    }
    bool fits = false;
    if (b == "Tensor") fits = a.is<tensor>() && a.as<tensor>().defined();
    else if (scalar) fits = a.is_number();
    else if (whole) fits = a.is<extent>();
    else if (real) fits = a.is<extent>() || a.is<double>();
    else if (b == "bool") fits = a.is<bool>();
    else if (b == "str" || b == "Layout" || b == "Device" || b == "MemoryFormat") fits = a.is<std::string>();
    else if (b == "ScalarType") fits = a.is<dtype>();
    else if (b == "Any") fits = true;
    if (fits) to = a;
    return fits;
  }
};

/// Calls an operator that a `library` defined. Tensors become operands; other arguments become attributes.
template <class T>
T call_table_of_library(call_overload const& o, std::vector<argument> const& values) {
  boxed_args args;
  attributes at;
  for (std::size_t k = 0; k < values.size(); ++k) {
    argument const& a = values[k];
    if (o.schema.arguments[k].is_tensor()) args.push_back(parameter<tensor>::of(a));
    else if (a.is<argument::list>()) at.fact[at.count++] = parameter<dims>::of(a);
    else if (a.is<extent>()) at.fact[at.count++] = dims{a.as<extent>()};
    else if (a.is<bool>()) at.fact[at.count++] = dims{a.as<bool>()};
    else if (a.is<dtype>()) at.fact[at.count++] = dims{static_cast<index_t>(a.as<dtype>())};
    else
      refuse::with<value_error>(("varve: " + to_string(o.schema) +
                                 ": the attributes of an operator of a library are whole "
                                 "numbers, so that '" +
                                 o.schema.arguments[k].name + "' cannot be " + a.kind())
                                    .c_str());
  }
  attributes const checked = o.table->checked ? o.table->checked(at, args) : at;
  return boxed_op{o.table, &checked}(args);
}

/// True if a gradient is recorded for an argument.
template <class T>
bool is_recorded(std::vector<T> const& x) {
  for (T const& a : x) {
    if (a.template is<tensor>() && a.template as<tensor>().has_history()) return is_grad_enabled();
    if (a.template is<argument::list>() && is_recorded(a.template as<argument::list>())) return true;
  }
  return false;
}
/// Runs a row on bound arguments.
template <class T>
std::vector<T> run_overload(call_overload const& o, call_binding const& in) {
  if (o.table) return {call_table_of_library<tensor>(o, in.values)};
  std::vector<T> x, y;
  for (std::size_t k = 0; k < in.values.size(); ++k)
    if (!is_about_memory(o.schema.arguments[k])) x.push_back(in.values[k]);
  if (o.as == call_overload::form::out) {
    tensor const to = x.back().template as<tensor>();
    std::vector<tensor> operands;
    for (T const& a : x) {
      if (a.template is<tensor>()) operands.push_back(a.template as<tensor>());
      if (a.template is<argument::list>())
        for (T const& e : a.template as<argument::list>())
          if (e.template is<tensor>()) operands.push_back(e.template as<tensor>());
    }
    std::string const name = o.schema.name.substr(0, end_of_base(o.schema.name));
    bool const keeps = o.row->forms == call_forms::out_of_its_dtype;
    return {out_argument(to).give(name.c_str(), keeps, operands, [&] {
      o.row->run(o.row->function, x.data(), y);
      return y[0].template as<tensor>();
    })};
  }
  if (o.as == call_overload::form::in_place) {
    tensor const to = x[0].template as<tensor>();
    if (is_recorded(x)) x[0] = tensor(clone(to)); // a gradient may need the old values
    o.row->run(o.row->function, x.data(), y);
    tensor const r = y[0].template as<tensor>();
    require_room(o.schema.name.c_str(), meta_of(to), meta_of(r));
    copy_(to, r);
    return {to};
  }
  o.row->run(o.row->function, x.data(), y);
  if (in.requires_grad)
    for (T const& r : y)
      if (r.template is<tensor>()) r.template as<tensor>().requires_grad_();
  return y;
}

template <class T>
call_overloads overloads_of_name(std::string_view name) {
  return call_table::instance().find(name);
}
template <class T>
std::vector<std::string> names_of_calls() {
  return call_table::instance().names();
}
template <class T>
std::vector<T> call_by_name(std::string_view name, std::span<T const> x, std::span<named_argument const> named) {
  call_overloads const all = overloads_of_name<T>(name);
  if (all.empty())
    refuse::with<dispatch_error>(
        ("varve: there is no operator " + std::string(name) +
         " to call by name; include the header of its family (varve/by_name/all.hpp has all), or link "
         "the compiled library")
            .c_str());
  std::string why;
  for (bool const lenient : {false, true})
    for (call_overload const* o : all) {
      call_binding const in(*o, x, named, lenient);
      if (in.why.empty()) return run_overload<T>(*o, in);
      if (lenient) why += "\n  " + to_string(o->schema) + " " + in.why;
    }
  refuse::with<value_error>(("varve: " + std::string(name) + " cannot be called with these arguments:" + why).c_str());
}
} // namespace varve::detail
#endif
