import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of several groups in one Java, for the client's tests: starting Java takes longer than any of them.
 * Run from source: java -cp 'lib/*' Members.java
 *
 * join BOOTSTRAP GROUP TOPIC ASSIGNOR   prints "GROUP owns P,P,..." after each rebalance and "GROUP got VALUE"
 * leave GROUP                           closes that member and prints "GROUP left"
 */
public final class Members {
    private static final Map<String, Thread> members = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        var commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] given = line.split(" ");
            if (given[0].equals("join")) {
                var member = new Thread(() -> live(given[1], given[2], given[3], given[4]));
                members.put(given[2], member);
                member.start();
            } else {
                members.remove(given[1]);
            }
        }
        members.clear();
    }

    private static void live(String bootstrap, String group, String topic, String assignor) {
        try (var consumer = new KafkaConsumer<>(settings(bootstrap, group, assignor), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    var owned = new TreeSet<Integer>();
                    consumer.assignment().forEach(partition -> owned.add(partition.partition()));
                    tell(group, "owns " + String.join(",", owned.stream().map(String::valueOf).toList()));
                }
            });
            while (members.get(group) == Thread.currentThread()) {
                consumer.poll(Duration.ofMillis(50)).forEach(record -> tell(group, "got " + record.value()));
            }
        }
        tell(group, "left");
    }

    private static Properties settings(String bootstrap, String group, String assignor) {
        var settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("client.id", "java");
        settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
        settings.put("auto.offset.reset", "earliest");
        settings.put("heartbeat.interval.ms", "100");
        settings.put("session.timeout.ms", "6000");
        settings.put("enable.metrics.push", "false");
        return settings;
    }

    private static void tell(String group, String what) {
        System.out.println(group + " " + what);
    }
}
