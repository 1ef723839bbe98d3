"""What ``lamina doctor`` looks at: facts are gathered by ``look_…`` functions and judged by pure ones beside them."""
