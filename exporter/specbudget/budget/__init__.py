"""The budget file: units, model, and strict reading with one clear line per problem."""
