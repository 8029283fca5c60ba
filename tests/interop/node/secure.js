// For each case of a JSON file: writes a record and reads it in a group; prints the case's name and "ok" or the error.
const fs = require('fs')
const { Kafka, logLevel } = require('kafkajs')

const READ_MS_MAX = 30000

function saslOf(one) {
  if (!one.mechanism) return undefined
  const mechanism = one.mechanism.toLowerCase()
  if (mechanism === 'oauthbearer') return { mechanism, oauthBearerProvider: async () => ({ value: one.token }) }
  return { mechanism, username: one.username, password: one.password }
}

function tlsOf(one) {
  if (!one.ca) return false
  const text = (path) => (path ? fs.readFileSync(path, 'utf-8') : undefined)
  return { ca: [text(one.ca)], cert: text(one.certificate), key: text(one.key) }
}

async function roundTrip(one) {
  const kafka = new Kafka({
    clientId: 'kafkajs',
    brokers: [one.address],
    ssl: tlsOf(one),
    sasl: saslOf(one),
    logLevel: logLevel.NOTHING,
    retry: { retries: one.retries },
  })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: one.topic, numPartitions: 1 }], waitForLeaders: true })
  await admin.disconnect()
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: one.topic, messages: [{ value: 'value' }] })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: one.topic })
  await consumer.connect()
  await consumer.subscribe({ topics: [one.topic], fromBeginning: true })
  const value = await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('no record')), READ_MS_MAX).unref()
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) }).catch(reject)
  })
  await consumer.disconnect()
  return value === 'value' ? 'ok' : `another value: ${value}`
}

async function main() {
  for (const one of JSON.parse(fs.readFileSync(process.argv[2], 'utf-8'))) {
    const result = await roundTrip(one).catch((error) => `${error.name}: ${error.message}`)
    console.log(`${one.name} ${result.replaceAll('\n', ' ')}`)
  }
  process.exit(0)
}

main()
