import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own client, for the interop tests. Run from source: java -cp 'lib/*' KafkaClient.java BOOTSTRAP COMMAND ARGUMENTS
 *
 * produce COUNT TOPIC=CODEC...   COUNT records 0, 1, ... to each topic, with the client's defaults (idempotent)
 * consume COUNT TOPIC...         prints "TOPIC VALUE" until COUNT records of each topic have come
 * member GROUP TOPIC ASSIGNOR    prints "owns P,P,..." after each rebalance and "got VALUE", until its input ends;
 *                                ASSIGNOR "consumer" stands for the consumer protocol (KIP-848)
 */
public final class KafkaClient {
    public static void main(String[] arguments) throws Exception {
        List<String> given = List.of(arguments);
        List<String> rest = given.subList(2, given.size());
        switch (given.get(1)) {
            case "produce" -> produce(given.get(0), rest);
            case "consume" -> consume(given.get(0), rest);
            case "member" -> member(given.get(0), rest);
            default -> throw new IllegalArgumentException(given.get(1));
        }
    }

    private static void produce(String bootstrap, List<String> given) throws Exception {
        int count = Integer.parseInt(given.get(0));
        for (String pair : given.subList(1, given.size())) {
            String[] topicAndCodec = pair.split("=");
            Properties settings = new Properties();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("compression.type", topicAndCodec[1]);
            settings.put("linger.ms", "5");
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                List<Future<?>> sent = new ArrayList<>();
                for (int number = 0; number < count; number++) {
                    sent.add(producer.send(new ProducerRecord<>(topicAndCodec[0], 0, "key", Integer.toString(number))));
                }
                for (Future<?> one : sent) {
                    one.get();
                }
            }
        }
    }

    private static void consume(String bootstrap, List<String> given) {
        List<String> topics = given.subList(1, given.size());
        int wanted = Integer.parseInt(given.get(0)) * topics.size();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = topics.stream().map(topic -> new TopicPartition(topic, 0)).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (wanted > 0) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println(record.topic() + " " + record.value());
                    wanted--;
                }
            }
        }
    }

    private static void member(String bootstrap, List<String> given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", given.get(0));
        settings.put("client.id", "java");
        settings.put("auto.offset.reset", "earliest");
        if (given.get(2).equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + given.get(2));
            settings.put("heartbeat.interval.ms", "100");
            settings.put("session.timeout.ms", "6000");
        }
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(given.get(1)), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    var owned = new TreeSet<Integer>();
                    consumer.assignment().forEach(partition -> owned.add(partition.partition()));
                    System.out.println("owns " + String.join(",", owned.stream().map(String::valueOf).toList()));
                }
            });
            while (System.in.available() == 0) {
                consumer.poll(Duration.ofMillis(50)).forEach(record -> System.out.println("got " + record.value()));
            }
        }
    }
}
