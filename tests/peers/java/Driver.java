import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients behind one JSON command per line: a command on stdin, its answer on stdout. Bytes travel as hex.
 * An end of the input halts the process without closing anything, so that an open transaction stays open.
 */
public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();
    final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    final Map<String, Member> members = new HashMap<>();
    final String bootstrap;
    final Admin admin;

    Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments[0]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ObjectNode answer;
            try {
                answer = driver.run(JSON.readTree(line));
            } catch (Exception failure) {
                Throwable cause = failure.getCause() == null ? failure : failure.getCause();
                answer = JSON.createObjectNode().put("error", cause.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    ObjectNode run(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        String producer = command.path("producer").asText();
        switch (command.get("do").asText()) {
            case "create" -> create(command, answer);
            case "configure" -> configure(command);
            case "describe" -> describe(command.get("topic").asText(), answer);
            case "delete_records" -> admin.deleteRecords(Map.of(partitionOf(command),
                RecordsToDelete.beforeOffset(command.get("before").asLong()))).all().get();
            case "open" -> open(producer, command.get("configs"));
            case "send" -> send(producers.get(producer), command.get("records"), answer);
            case "begin" -> producers.get(producer).beginTransaction();
            case "commit" -> producers.get(producer).commitTransaction();
            case "abort" -> producers.get(producer).abortTransaction();
            case "send_offsets" -> producers.get(producer).sendOffsetsToTransaction(offsets(command),
                new ConsumerGroupMetadata(command.get("group").asText()));
            case "close" -> producers.remove(producer).close();
            case "read" -> read(command, answer);
            case "consume" -> consume(command);
            case "join" -> join(command);
            case "leave" -> members.remove(command.get("member").asText()).leave();
            case "members" -> members.forEach((name, member) -> member.tell(answer.putObject(name)));
            case "offsets" -> groupOffsets(command.get("group").asText(), answer);
            default -> throw new IllegalArgumentException("unknown command " + command);
        }
        return answer;
    }

    void create(JsonNode command, ObjectNode answer) throws Exception {
        NewTopic topic = new NewTopic(command.get("topic").asText(), command.get("partitions").asInt(), (short) 1);
        topic.configs(strings(command.get("configs")));
        answer.put("topic_id", admin.createTopics(List.of(topic)).topicId(topic.name()).get().toString());
    }

    void configure(JsonNode command) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        strings(command.get("configs")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, command.get("topic").asText());
        admin.incrementalAlterConfigs(Map.of(topic, changes)).all().get();
    }

    void describe(String topic, ObjectNode answer) throws Exception {
        var description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        answer.put("topic_id", description.topicId().toString());
        answer.put("partitions", description.partitions().size());
        ObjectNode configs = answer.putObject("configs");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                configs.put(entry.name(), entry.value());
            }
        }
    }

    void open(String name, JsonNode configs) {
        Map<String, Object> settings = new HashMap<>(strings(configs));
        settings.put("bootstrap.servers", bootstrap);
        var serializer = new ByteArraySerializer();
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, serializer, serializer);
        if (settings.containsKey("transactional.id")) {
            producer.initTransactions();
        }
        producers.put(name, producer);
    }

    /** Every record is [topic, partition, timestamp or null, key, value, [[header, value], …]]; one flush at the end. */
    void send(KafkaProducer<byte[], byte[]> producer, JsonNode records, ObjectNode answer) throws Exception {
        List<Future<RecordMetadata>> acknowledgements = new ArrayList<>();
        for (JsonNode fields : records) {
            Long timestamp = fields.get(2).isNull() ? null : fields.get(2).asLong();
            var sent = new ProducerRecord<>(fields.get(0).asText(), fields.get(1).asInt(), timestamp,
                bytes(fields.get(3)), bytes(fields.get(4)));
            for (JsonNode header : fields.get(5)) {
                sent.headers().add(header.get(0).asText(), bytes(header.get(1)));
            }
            acknowledgements.add(producer.send(sent));
        }
        producer.flush();
        ArrayNode offsets = answer.putArray("offsets");
        for (Future<RecordMetadata> acknowledgement : acknowledgements) {
            offsets.add(acknowledgement.get().offset());
        }
    }

    /** All records of one partition from its start to the end that the isolation level allows, and these two bounds. */
    void read(JsonNode command, ObjectNode answer) {
        TopicPartition partition = partitionOf(command);
        Map<String, Object> settings = new HashMap<>();
        settings.put("isolation.level", command.get("isolation").asText());
        settings.put("enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings)) {
            consumer.assign(List.of(partition));
            long start = consumer.beginningOffsets(List.of(partition)).get(partition);
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            answer.put("start", start).put("end", end);
            ArrayNode records = answer.putArray("records");
            consumer.seek(partition, start);
            while (consumer.position(partition) < end) {
                consumer.poll(Duration.ofMillis(500)).forEach(found -> addRecord(records, found));
            }
        }
    }

    void addRecord(ArrayNode records, ConsumerRecord<byte[], byte[]> found) {
        ArrayNode fields = records.addArray().add(found.offset()).add(found.timestamp());
        fields.add(hex(found.key())).add(hex(found.value()));
        ArrayNode headers = fields.addArray();
        for (Header header : found.headers()) {
            headers.addArray().add(header.key()).add(hex(header.value()));
        }
    }

    /** A group member that subscribes, reads at least so many records, commits where it is and leaves. */
    void consume(JsonNode command) {
        Map<String, Object> settings = new HashMap<>(strings(command.get("configs")));
        settings.put("group.id", command.get("group").asText());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings)) {
            consumer.subscribe(List.of(command.get("topic").asText()));
            for (int count = 0; count < command.get("count").asInt(); ) {
                count += consumer.poll(Duration.ofMillis(500)).count();
            }
            consumer.commitSync();
        }
    }

    /** A member that stays: it reads and commits on a thread of its own until it leaves. */
    void join(JsonNode command) {
        Map<String, Object> settings = new HashMap<>(strings(command.get("configs")));
        settings.put("group.id", command.get("group").asText());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        Member member = new Member(consumer(settings), command.get("topic").asText());
        members.put(command.get("member").asText(), member);
        member.start();
    }

    void groupOffsets(String group, ObjectNode answer) throws Exception {
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
            if (offset != null) {
                answer.put(partition.toString(), offset.offset());
            }
        });
    }

    KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> settings) {
        settings.put("bootstrap.servers", bootstrap);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode command) {
        return Map.of(partitionOf(command), new OffsetAndMetadata(command.get("offset").asLong()));
    }

    static TopicPartition partitionOf(JsonNode command) {
        return new TopicPartition(command.get("topic").asText(), command.get("partition").asInt());
    }

    static Map<String, String> strings(JsonNode fields) {
        Map<String, String> found = new HashMap<>();
        fields.properties().forEach(field -> found.put(field.getKey(), field.getValue().asText()));
        return found;
    }

    static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.asText());
    }

    static String hex(byte[] bytes) {
        return bytes == null ? null : HEX.formatHex(bytes);
    }

    /** What happened to a member, with the machine's monotonic clock, which is the same in every process. */
    static class Member extends Thread implements ConsumerRebalanceListener {
        final KafkaConsumer<byte[], byte[]> consumer;
        final String topic;
        final ArrayNode events = JSON.createArrayNode();
        final Map<Integer, List<Long>> read = new HashMap<>();
        volatile boolean wanted = true;

        Member(KafkaConsumer<byte[], byte[]> consumer, String topic) {
            this.consumer = consumer;
            this.topic = topic;
            setDaemon(true);
        }

        @Override
        public void run() {
            consumer.subscribe(List.of(topic), this);
            while (wanted) {
                try {
                    var found = consumer.poll(Duration.ofMillis(100));
                    found.forEach(this::note);
                    if (!found.isEmpty()) {
                        consumer.commitSync();
                    }
                } catch (RuntimeException failure) {
                    note(failure.getClass().getSimpleName(), List.of());
                }
            }
            consumer.close();
        }

        void leave() throws InterruptedException {
            wanted = false;
            join();
        }

        synchronized void note(ConsumerRecord<byte[], byte[]> record) {
            read.computeIfAbsent(record.partition(), partition -> new ArrayList<>()).add(record.offset());
        }

        synchronized void note(String event, Collection<TopicPartition> partitions) {
            ArrayNode fields = events.addArray().add(System.nanoTime()).add(event);
            ArrayNode numbers = fields.add(consumer.groupMetadata().generationId()).addArray();
            partitions.forEach(partition -> numbers.add(partition.partition()));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            note("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            note("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            note("lost", partitions);
        }

        synchronized void tell(ObjectNode answer) {
            answer.set("events", events.deepCopy());
            ObjectNode offsets = answer.putObject("read");
            read.forEach((partition, found) -> found.forEach(offsets.withArray(partition.toString())::add));
        }
    }
}
