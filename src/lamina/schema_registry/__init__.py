"""Keys and values whose schema is in a schema registry: Confluent's framing, Avro and JSON.

- `location`: where a registry is, and how one logs in. `client`: what is asked of it over HTTP.
- `frame`: the five bytes before each value. `writer_schemas`: decodes one value after another, and remembers schemas.
- `avro_schema`, `avro_decoding`: Avro, by fastavro, which is imported when the first Avro schema comes. `avro_guard`:
  which bytes fastavro must not be given. `logical_types`: whether two schemas mean the same by their numbers.
- `json_values`: a decoded value as JSON.

Used by the command line and by Spark's functions. Must not know either of them, nor topics.
"""
