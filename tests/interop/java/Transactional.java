import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactional producers that do what each line of the input says, and print "ok", "fenced" or "failed REASON":
 *   open NAME BOOTSTRAP ID TIMEOUT_MS, begin NAME, send NAME TOPIC VALUE, offset NAME GROUP TOPIC OFFSET, commit NAME,
 *   abort NAME, close NAME
 */
public final class Transactional {
    private static final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] line) {
        try {
            run(line);
            return "ok";
        } catch (Exception error) {
            for (Throwable at = error; at != null; at = at.getCause()) {
                if (at instanceof ProducerFencedException || at instanceof InvalidProducerEpochException) return "fenced";
            }
            return "failed " + error;
        }
    }

    private static void run(String[] line) throws Exception {
        var producer = producers.get(line[1]);
        switch (line[0]) {
            case "open" -> producers.put(line[1], open(line[2], line[3], line[4]));
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(line[2], 0, null, line[3])).get();
            case "offset" -> producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(line[3], 0), new OffsetAndMetadata(Long.parseLong(line[4]))),
                new ConsumerGroupMetadata(line[2]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producers.remove(line[1]).close(Duration.ZERO);
            default -> throw new IllegalArgumentException(line[0]);
        }
    }

    private static KafkaProducer<String, String> open(String bootstrap, String id, String timeoutMs) {
        var properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", id);
        properties.put("transaction.timeout.ms", timeoutMs);
        var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }
}
