import java.io.OutputStream;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer at its defaults: Writer BOOTSTRAP TOPIC PARTITION PERIOD_MS BYTES
 *
 * It sends a record every PERIOD_MS until its standard input ends. For each one it prints the clock that Python calls
 * perf_counter, in ns, when it was sent and when it was acknowledged, or "error TEXT".
 */
public final class Writer {
    private static volatile boolean stopping;

    public static void main(String[] given) throws Exception {
        var end = new Thread(Writer::waitForEnd);
        end.setDaemon(true);
        end.start();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        var partition = Integer.parseInt(given[2]);
        var value = new byte[Integer.parseInt(given[4])];
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (; !stopping; Thread.sleep(Long.parseLong(given[3]))) {
                var sent = System.nanoTime();
                producer.send(
                        new ProducerRecord<>(given[1], partition, null, value),
                        (written, error) -> say(error == null ? sent + " " + System.nanoTime() : "error " + error));
            }
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static void waitForEnd() {
        try {
            System.in.transferTo(OutputStream.nullOutputStream());
        } catch (java.io.IOException gone) {
            // as an end
        }
        stopping = true;
    }
}
