import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own client writes and reads while brokers die: History BOOTSTRAP TOPIC PARTITION GIVE_UP_MS PACE_MS GROUP
 *
 * It sends 0, 1, 2, ... to one partition with an idempotent producer, and reads the whole topic as the only member of a
 * group, which commits after each poll, until its standard input ends. It prints
 *
 * acked VALUE OFFSET             a record was acknowledged
 * error TEXT                     a record was given up
 * got PARTITION OFFSET VALUE     a record was read
 * committed PARTITION OFFSET     a commit was answered
 */
public final class History {
    private static final int UNACKNOWLEDGED_MAX = 2_000;
    private static volatile boolean stopping;

    public static void main(String[] given) throws Exception {
        var reader = new Thread(() -> read(given[0], given[1], given[5]));
        reader.start();
        var end = new Thread(History::waitForEnd);
        end.setDaemon(true);
        end.start();
        write(given[0], given[1], Integer.parseInt(given[2]), given[3], Long.parseLong(given[4]));
        reader.join();
        System.out.flush();
    }

    private static void waitForEnd() {
        try {
            System.in.transferTo(OutputStream.nullOutputStream());
        } catch (IOException gone) {
            // as an end
        }
        stopping = true;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static void write(String bootstrap, String topic, int partition, String giveUpMs, long paceMs)
            throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("linger.ms", "2");
        settings.put("delivery.timeout.ms", giveUpMs);
        var room = new Semaphore(UNACKNOWLEDGED_MAX);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (long value = 0; !stopping; Thread.sleep(paceMs)) {
                if (room.tryAcquire(1, TimeUnit.SECONDS)) {
                    var text = Long.toString(value++);
                    producer.send(new ProducerRecord<>(topic, partition, null, text), (written, error) -> {
                        room.release();
                        say(error == null ? "acked " + text + " " + written.offset() : "error " + error);
                    });
                }
            }
        }
    }

    private static void read(String bootstrap, String topic, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("default.api.timeout.ms", "10000");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!stopping) {
                try {
                    for (var record : consumer.poll(Duration.ofMillis(100))) {
                        say("got " + record.partition() + " " + record.offset() + " " + record.value());
                    }
                    commit(consumer);
                } catch (KafkaException | NullPointerException failed) {
                    // the next poll goes on from the position, or from what is committed; the second is KAFKA-20312: a
                    // partition that has lost its leader since the consumer looked for it
                }
            }
        }
    }

    private static void commit(KafkaConsumer<String, String> consumer) {
        var positions = new HashMap<TopicPartition, OffsetAndMetadata>();
        for (var partition : consumer.assignment()) {
            positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        }
        consumer.commitSync(positions);
        positions.forEach((partition, offset) -> say("committed " + partition.partition() + " " + offset.offset()));
    }
}
