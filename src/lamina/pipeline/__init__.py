"""The data pipeline on Spark. The only room that imports pyspark; a broker talks to it over a pipe, never by import."""
