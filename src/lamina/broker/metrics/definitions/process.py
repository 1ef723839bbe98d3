"""The loop, its threads, and what the process takes of the machine."""

from lamina.broker.metrics.metric import counter, gauge, histogram

EVENT_LOOP_LAG = histogram(
    "lamina_event_loop_lag_seconds",
    "How late a timer came that is due ten times a second: what a request waits for the loop.",
    kafka="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent (the same worry)",
)
THREADS_BUSY = gauge("lamina_threads_busy", "Threads that are busy with work of the loop.")
THREADS_QUEUED = gauge(
    "lamina_threads_queued",
    "Pieces of work that no thread has taken yet.",
    kafka="kafka.network:type=RequestChannel,name=RequestQueueSize (nearly)",
)
THREADS_BUSY_SECONDS = counter("lamina_threads_busy_seconds_total", "Time that threads were busy.")
PROCESS_RESIDENT_MEMORY = gauge(
    "lamina_process_resident_memory_bytes", "Memory of the process, mapped files included. Linux only."
)
PROCESS_CPU_SECONDS = counter("lamina_process_cpu_seconds_total", "Processor time of the process, all threads.")
PROCESS_OPEN_DESCRIPTORS = gauge(
    "lamina_process_open_descriptors",
    "Open files and sockets.",
    kafka="java.lang:type=OperatingSystem, OpenFileDescriptorCount",
)
PROCESS_MAX_DESCRIPTORS = gauge(
    "lamina_process_max_descriptors",
    "How many may be open.",
    kafka="java.lang:type=OperatingSystem, MaxFileDescriptorCount",
)
