"""The data pipeline on Spark. The only package that imports pyspark; a broker talks to it over a pipe alone."""
