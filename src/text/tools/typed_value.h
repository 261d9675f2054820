// Values that a syntax writes as plain text, typed by the request's schema.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace vedette::text {

// What a schema lets a value be. known is false for a schema that says nothing (or none).
struct ValueTypes {
  bool known = false;
  bool null = false, boolean = false, integer = false, number = false, string = false, array = false, object = false;
};
// root: the schema that holds $defs. References, unions and enums are followed.
ValueTypes value_types(const Json* schema, const Json* root);

// The schema of a parameter; null where the tool has none.
const Json* parameter_schema(const Json& parameters, std::string_view name);

// The JSON text of a value written as `raw`. Where the types allow it: null, whole number, number, boolean, array or
// object (Python's spelling mended), else a string. Without types only short scalars of one line are taken as such,
// and with any_json everything that is JSON.
std::string typed_json(std::string_view raw, const ValueTypes& types, bool any_json = false);

// A value that the syntax writes as a literal (JSON text), where its type is not allowed but another reading is.
std::string retyped_json(std::string_view json, const ValueTypes& types);

}  // namespace vedette::text
