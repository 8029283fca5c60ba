import java.io.FileInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** For each file of settings: writes a record and reads it in a group; prints the file's name and "ok" or the error. */
public class Secure {
  public static void main(String[] files) {
    for (String file : files) {
      String result = "ok";
      try {
        roundTrip(file);
      } catch (Exception error) {
        Throwable cause = error;
        while (cause.getCause() != null) cause = cause.getCause();
        result = cause.getClass().getSimpleName();
      }
      System.out.println(file.substring(file.lastIndexOf('/') + 1) + " " + result);
    }
  }

  static void roundTrip(String file) throws Exception {
    Properties settings = new Properties();
    try (FileInputStream in = new FileInputStream(file)) {
      settings.load(in);
    }
    settings.put("max.block.ms", "10000");
    settings.put("auto.offset.reset", "earliest");
    settings.put("group.id", UUID.randomUUID().toString());
    String topic = "java-" + UUID.randomUUID();
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      producer.send(new ProducerRecord<>(topic, "value")).get(20, TimeUnit.SECONDS);
    }
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(topic));
      long until = System.currentTimeMillis() + 20_000;
      while (consumer.poll(Duration.ofMillis(200)).isEmpty())
        if (System.currentTimeMillis() > until) throw new IllegalStateException("no record");
      consumer.commitSync();
    }
  }
}
